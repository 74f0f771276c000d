"""What is older than the days that it is kept is found nowhere, and nothing younger is touched."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from people import People
from sessions import check_kept, kept, open_graph, record, tell, thread

from topicloom import (
    FactChanges,
    InputError,
    Memory,
    PersonMemory,
    RetentionPolicy,
    get_session,
)
from topicloom.hosting import REMOVED, Graph, expire_due, run_background
from topicloom.testing import Clock

CONFIG = thread()
MONTH = RetentionPolicy(messages=30)


def read_bytes(folder: Path) -> bytes:
    """All that is stored in files."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return b"".join(path.read_bytes() for path in files)


def mark(number: int) -> str:
    """A word that only one message has."""
    return f"ZEBRA{number:03}"


GAPS = st.lists(st.floats(0.01, 25), min_size=1, max_size=7)


@settings(max_examples=12, deadline=None)
@given(GAPS, st.integers(0, 6), st.floats(1, 60))
@pytest.mark.slow
def test_older_is_found_nowhere_and_younger_is_as_it_was(
    gaps: list[float], split: int, days: float
) -> None:
    clock, saver, store = Clock(), InMemorySaver(), InMemoryStore()
    with TemporaryDirectory() as made:
        folder = Path(made)
        graph = open_graph(folder, clock=clock, checkpointer=saver, store=store, embedder="hashing")
        for number, gap in enumerate(gaps):
            said = f"{'茶山雨'[number % 3]}：{mark(number)} 第{number}次"
            tell(graph, CONFIG, said, keep=0 if number == split else None)
            clock.now += timedelta(days=gap)
        memory, policy = Memory.of(graph, CONFIG), RetentionPolicy(messages=days)
        before = memory.history(limit=None)
        ended = memory.expire(policy)
        old = {m.id for m in ended.messages}
        since = clock.now - timedelta(days=days)
        assert old == {m.id for m in before if m.time < since.isoformat()}
        assert ended.left == ()
        after = Memory.of(graph, CONFIG).history(limit=None)
        assert [m for m in after if m.id not in old] == [m for m in before if m.id not in old]
        assert all(m.text == REMOVED for m in after if m.id in old)
        check_kept(kept(folder, get_session(graph, CONFIG)), get_session(graph, CONFIG))
        shown = str([memory.topics(), memory.receipts(), memory.search("ZEBRA")])
        checkpoints = str((saver.storage, saver.blobs, saver.writes))
        items = str(store.search((), limit=1_000))
        for message in before:
            if message.id not in old or message.role != "user":
                continue
            word = mark(int(message.text.partition("ZEBRA")[2][:3]))
            assert word.encode() not in read_bytes(folder)
            assert word not in shown + checkpoints + items
        assert not Memory.of(graph, CONFIG).expire(policy, dry_run=True).messages
        tell(graph, CONFIG, "茶：还在吗？")  # the conversation goes on


def test_a_dry_run_changes_nothing_and_says_the_same(tmp_path: Path) -> None:
    clock = Clock()
    graph = open_graph(tmp_path, clock=clock)
    tell(graph, CONFIG, "茶：很久以前", keep=0)
    clock.now += timedelta(days=40)
    tell(graph, CONFIG, "茶：今天")
    before = read_bytes(tmp_path)
    memory = Memory.of(graph, CONFIG)
    tried = memory.expire(MONTH, dry_run=True)
    assert read_bytes(tmp_path) == before
    assert tried.messages[0].text == "茶：很久以前"
    done = memory.expire(MONTH)
    assert (done.messages, done.topics, done.facts) == (tried.messages, tried.topics, tried.facts)


@pytest.mark.slow
def test_other_branches_end_too_but_not_what_repeats_the_words_later(tmp_path: Path) -> None:
    clock = Clock()
    graph = open_graph(tmp_path, clock=clock)
    tell(graph, CONFIG, "茶：ZANZIBAR 其一")
    begun = next(iter(graph.get_state_history(CONFIG))).config
    tell(graph, CONFIG, "茶：MOMBASA 其二")
    clock.now += timedelta(days=40)
    said: Any = {"messages": [HumanMessage("茶：ZANZIBAR 又说一次")]}
    graph.invoke(said, begun)  # where the other one was said, and on a branch of its own
    memory = Memory.of(graph, CONFIG)
    memory.expire(MONTH)
    assert b"MOMBASA" not in read_bytes(tmp_path)
    texts = [m.text for m in memory.history()]
    assert "茶：ZANZIBAR 又说一次" in texts
    assert "茶：ZANZIBAR 其一" not in texts


def test_what_a_message_was_changed_to_ends_with_it(tmp_path: Path) -> None:
    clock = Clock()
    graph = open_graph(tmp_path, clock=clock)
    record(graph, CONFIG, HumanMessage("茶：ZANZIBAR", id="a"), AIMessage("好", id="b"))
    clock.now += timedelta(days=40)
    graph.update_state(CONFIG, {"messages": [HumanMessage("茶：MOMBASA", id="a")]})
    tell(graph, CONFIG, "山：今天")
    Memory.of(graph, CONFIG).expire(MONTH)
    assert b"ZANZIBAR" not in read_bytes(tmp_path)
    assert b"MOMBASA" not in read_bytes(tmp_path)


@pytest.mark.slow
def test_a_pinned_topic_is_no_exception(tmp_path: Path) -> None:
    clock = Clock()
    graph = open_graph(tmp_path, clock=clock)
    tell(graph, CONFIG, "茶：ZANZIBAR", "茶：再来", keep=0)
    memory = Memory.of(graph, CONFIG)
    memory.pin(memory.topics()[0].id)
    clock.now += timedelta(days=40)
    memory.expire(MONTH)
    assert b"ZANZIBAR" not in read_bytes(tmp_path)
    assert memory.topics()[0].by_hand == ("pinned",)


@pytest.fixture
def people(tmp_path: Path) -> People:
    return People(tmp_path)


@pytest.mark.slow
def test_a_fact_ends_with_the_newest_message_that_it_rests_on(people: People) -> None:
    for text in ("I live in Zanzibar", "I own a boat", "I like tea"):
        people.learn("a", text)
    people.pass_days(37)
    people.learn("a", "I like tea", "I like tea")
    memory = people.memory("a")
    memory.correct_fact(next(k for k, f in memory.facts().items() if "boat" in f.text))
    ended = memory.expire(MONTH)
    assert [f.text for f in ended.facts.values()] == ["I live in Zanzibar"]
    assert people.facts("a") == {"I own a boat", "I like tea"}
    assert people.facts("b") == set()
    people.say("b", "Hello")
    assert people.facts("b") == {"I own a boat", "I like tea"}
    old = {m.id for m in ended.messages}
    assert all(old.isdisjoint(f.messages) for f in people.kept.facts("a").values())
    assert "Zanzibar" not in str(people.store.search((), limit=1_000))


def test_facts_may_end_before_messages(people: People) -> None:
    people.learn("a", "I live in Zanzibar")
    people.pass_days(10)
    people.learn("a", "I own a boat")
    memory = people.memory("a")
    ended = memory.expire(RetentionPolicy(facts=5))
    assert ([f.text for f in ended.facts.values()], ended.messages) == (["I live in Zanzibar"], ())
    assert people.facts("a") == {"I own a boat"}
    assert memory.history()[0].text == "I live in Zanzibar"


def test_what_replaced_an_ended_fact_forgets_its_key(people: People) -> None:
    people.learn("a", "I live in Zanzibar", "home")
    people.pass_days(40)
    people.learn("a", "I live in Oslo", "home")
    people.memory("a").expire(MONTH)
    assert [f.replaces for f in people.kept.facts("a").values()] == [()]


def test_receipts_keep_their_turn_and_time(tmp_path: Path) -> None:
    clock = Clock()
    graph = open_graph(tmp_path, clock=clock)
    tell(graph, CONFIG, "茶：一")
    clock.now += timedelta(days=40)
    tell(graph, CONFIG, "茶：二")
    memory = Memory.of(graph, CONFIG)
    before, younger = memory.receipts()
    ended = memory.expire(RetentionPolicy(receipts=30))
    assert (ended.receipts, ended.messages) == (1, ())
    old, same = memory.receipts()
    assert same == younger
    assert (old.turn, old.user, old.started) == (before.turn, before.user, before.started)
    assert (old.calls, old.sections) == ((), {})
    assert memory.history()[0].text == "茶：一"
    assert not memory.expire(RetentionPolicy(receipts=30), dry_run=True)


@pytest.mark.slow
def test_a_user_has_days_of_their_own_over_all_threads(people: People) -> None:
    for name, user in (("a", "ann"), ("b", "ann"), ("c", "bob")):
        people.say(name, f"茶：ZANZIBAR {name}", user=user)
    people.pass_days(10)
    for name, user in (("a", "ann"), ("c", "bob")):
        people.say(name, "山：今天", user=user)
    policy = RetentionPolicy(users={"ann": 5})
    assert PersonMemory(people.graph, "bob").expire(policy) == {}
    person = PersonMemory(people.graph, "ann")
    tried = person.expire(policy, dry_run=True)
    assert sorted(tried) == ["a", "b"]
    assert sorted(person.expire(policy)) == ["a", "b"]
    assert person.expire(policy) == {}
    stored = read_bytes(people.folder)
    assert [b"ZANZIBAR " + name in stored for name in (b"a", b"b", b"c")] == [False, False, True]


def open_old(folder: Path, clock: Clock, **options: Any) -> Graph:
    """A session whose first message is older than a month."""
    graph = open_graph(folder, clock=clock, **options)
    tell(graph, CONFIG, "茶：ZANZIBAR", keep=0)
    clock.now += timedelta(days=40)
    tell(graph, CONFIG, "茶：今天")
    return graph


def test_by_the_settings_it_ends_once_nobody_speaks(tmp_path: Path) -> None:
    clock = Clock()
    graph = open_old(tmp_path, clock, retention={"messages": 30})
    assert not expire_due(graph, "s", silent_for=600)
    clock.now += timedelta(minutes=20)
    assert expire_due(graph, "s", silent_for=600)
    assert b"ZANZIBAR" not in read_bytes(tmp_path)
    before = read_bytes(tmp_path)
    assert not expire_due(graph, "s", silent_for=600)
    assert read_bytes(tmp_path) == before


async def test_so_it_is_on_the_event_loop(tmp_path: Path) -> None:
    graph = open_old(tmp_path, Clock())
    memory = Memory.of(graph, CONFIG)
    assert await memory.aexpire(MONTH, dry_run=True)
    assert await memory.aexpire(MONTH)
    assert b"ZANZIBAR" not in read_bytes(tmp_path)


@pytest.mark.slow
async def test_a_server_removes_it_by_itself(tmp_path: Path) -> None:
    clock, saver, store = Clock(), InMemorySaver(), InMemoryStore()
    options: Any = {"checkpointer": saver, "store": store, "retention": {"messages": 30}}
    graph = open_old(tmp_path, clock, **options)
    clock.now += timedelta(hours=1)
    async with run_background(graph, checkpointer=saver, store=store), asyncio.timeout(60):
        while b"ZANZIBAR" in read_bytes(tmp_path):
            await asyncio.sleep(0.02)
    assert Memory.of(graph, CONFIG).history()[-2].text == "茶：今天"


def test_without_days_nothing_ends(tmp_path: Path) -> None:
    graph = open_old(tmp_path, Clock())
    with pytest.raises(InputError, match="how many days"):
        Memory.of(graph, CONFIG).expire()


def test_a_fact_that_an_application_wrote_goes_by_its_own_time(people: People) -> None:
    people.learn("a", "I live in Zanzibar")
    (fact,) = people.kept.facts("a").values()
    own = replace(fact, text="Prefers mornings", messages=(), said=())
    people.kept.change_facts("a", FactChanges((own,)))
    people.pass_days(40)
    people.say("a", "茶")
    memory = people.memory("a")
    assert len(memory.expire(MONTH).facts) == 1
    assert len(memory.expire(RetentionPolicy(facts=30)).facts) == 1
    assert people.kept.facts("a") == {}
