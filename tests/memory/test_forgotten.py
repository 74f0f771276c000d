"""What is forgotten is gone from all that is stored, wherever a session has it or tells of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from sessions import (
    chatter,
    check_kept,
    copy_saver,
    kept,
    open_after,
    open_graph,
    past,
    tell,
    thread,
)

from topicloom import (
    Answer,
    Assignment,
    Fact,
    FactChanges,
    FileStorage,
    InputError,
    Memory,
    Quote,
    Reading,
    ReadRequest,
    ReflectionStore,
    Role,
    SessionStore,
    Settings,
    SplitRequest,
    StoredMessage,
    TopicWindow,
    build_session_graph,
    get_session,
    open_session,
)
from topicloom.hosting import REMOVED, Graph
from topicloom.testing import FixedRole, ScriptedResponder, fake_roles, read_tag

SECRET = "ZANZIBAR47"


def stored(folder: Path) -> list[str]:
    """The files that have anything of the secret."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [p.name for p in files if SECRET.encode() in p.read_bytes()]


def forget(folder: Path, graph: Graph) -> Any:
    """Forget all messages that tell the secret, by what the session shows of them."""
    memory = Memory.of(graph, thread())
    told = [m.id for m in memory.history(limit=None) if SECRET in m.text]
    assert told
    done = memory.forget(*told)
    session = get_session(graph, thread())
    check_kept(kept(folder, session), session)
    assert done.left == ()
    return done


def talk_at_once(folder: Path) -> Graph:
    """A session that two write to at once; one tells the secret, and takes over what others say."""
    done: list[Callable[[], object]] = []

    def reply(_: object) -> str:
        while done:
            with ThreadPoolExecutor(1) as beside:
                beside.submit(Context().run, done.pop()).result()
        return "好的。"

    saver = InMemorySaver()
    graph = open_graph(folder, fake_roles(ScriptedResponder(otherwise=reply)), checkpointer=saver)
    other = open_graph(folder, checkpointer=saver)
    tell(graph, thread(), "茶：你好")
    for number in range(2):
        done.append(partial(tell, other, thread(), f"山：别的第{number}次", keep=0))
        said: Any = {"messages": [HumanMessage(f"海：{SECRET} {number}")]}
        graph.invoke(said, thread(), durability="exit")
    return graph


@pytest.mark.slow
def test_what_was_written_twice_is_gone_twice(tmp_path: Path) -> None:
    """Who takes over what another writer said writes its own messages anew, behind these."""
    graph = talk_at_once(tmp_path)
    assert stored(tmp_path)
    shown = Memory.of(graph, thread()).forget("m5", dry_run=True)
    assert len(shown.messages) == 1
    forget(tmp_path, graph)
    assert stored(tmp_path) == []
    texts = [m.text for m in Memory.of(graph, thread()).history()]
    assert [t for t in texts if t.startswith("山")] == ["山：别的第0次", "山：别的第1次"]


@pytest.mark.slow
def test_copies_that_another_purge_left_are_gone(tmp_path: Path) -> None:
    graph = talk_at_once(tmp_path)
    session, store = open_session(graph, thread())
    numbers = [m.seq for m in store.messages(session) if SECRET in m.text]
    plan = store.plan_purge(session, numbers)
    own = set(store.transcript_refs(session))
    for chain, keep in plan.entries.items():
        keep = {r: k for r, k in keep.items() if chain != "transcript" or r in own}
        store.log.purge(chain, list(keep), keep)
    assert "transcript.jsonl" in stored(tmp_path)
    Memory.of(graph, thread()).forget(*(f"m{n}" for n in numbers))
    assert stored(tmp_path) == []


def test_the_same_words_at_another_time_stay(tmp_path: Path) -> None:
    """In this branch only what is named goes, though an application gives ids twice."""
    store = SessionStore(FileStorage(tmp_path).open("s"))

    def say(session: Any, *said: tuple[str, str, str | None]) -> Any:
        messages = [
            StoredMessage(seq=n, role="user", text=text, time=f"2026-03-{day}", source=source)
            for n, (text, day, source) in enumerate(said, session.count + 1)
        ]
        return store.append(session, messages)

    begun = say(get_session(open_graph(tmp_path), thread()), ("hm", "01", None))
    session = say(begun, ("yes", "02", "a"), ("yes", "03", "a"), ("yes", "04", None))
    beside = say(begun, ("but", "05", "b"), ("yes", "02", "a"), ("yes", "06", "c"))
    apart = say(begun, ("so", "07", None), ("yes", "04", None), ("yes", "08", None))
    plan = store.plan_purge(session, [2, 4])
    assert (plan.messages, plan.versions) == (("m2", "m4"), ())
    store.purge(plan)
    texts = [[m.text for m in store.messages(s)] for s in (session, beside, apart)]
    assert texts == [
        ["hm", REMOVED, "yes", REMOVED],
        ["hm", "but", REMOVED, "yes"],
        ["hm", "so", REMOVED, "yes"],
    ]


@pytest.mark.slow
def test_what_was_said_in_its_place_goes_with_its_reply(tmp_path: Path) -> None:
    """An edit in a chat is a fork: once it is forgotten, nothing leads to the other branch."""
    graph = open_graph(
        tmp_path, fake_roles(ScriptedResponder(otherwise=lambda r: f"Noted: {SECRET}"))
    )
    tell(graph, thread(), "hello")
    at = graph.get_state(thread()).config
    for text in (f"my secret is {SECRET}", "what a day"):
        graph.invoke({"messages": [HumanMessage(text)]}, at)
    tell(graph, at, f"{SECRET} it is, in better words")
    memory = Memory.of(graph, thread())
    shown = memory.forget("m2-m4", dry_run=True)
    assert [m.id for m in shown.messages] == ["m2", "m3", "m4", "m3", "m4"]
    memory.forget("m2-m4")
    (path,) = tmp_path.rglob("transcript.jsonl")
    assert path.read_text("utf-8").count(SECRET) == 1, "the reply to what a day"
    assert "what a day" in path.read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True])
def test_what_another_topic_was_lent_is_told_no_more(tmp_path: Path, again: bool) -> None:
    """Its reader tells of it in a summary, whether in its words or not."""

    def split(request: SplitRequest) -> tuple[Assignment, ...]:
        known = {t.name: t.id for t in request.topics}
        return tuple(
            Assignment(
                message=i,
                topic=known.get(read_tag(block.text)),
                name=read_tag(block.text),
                also=(known["雨"],) if SECRET in block.text and "雨" in known else (),
            )
            for block in request.rounds
            for i in block.ids
        )

    def read(request: ReadRequest) -> tuple[Reading, ...]:
        return tuple(map(read_one, request.windows))

    def read_one(window: TopicWindow) -> Reading:
        said = "\n".join(m.text for m in window.messages)
        told = f"The plan is {SECRET}" if again else "A plan that is secret"
        quotes = [Quote(id=m.id, weight=0.9) for m in window.messages if SECRET not in m.text]
        lent = window.topic.name == "雨" and SECRET in said
        return Reading(
            topic=window.topic.id,
            score=0.9,
            quotes=tuple(quotes[:1]),
            summary=told if lent else "",
        )

    roles = fake_roles(splitter=FixedRole(split), reader=FixedRole(read))
    graph = open_graph(tmp_path, roles)
    tell(graph, thread(), "雨：下雨", "雨：还下", f"茶：{SECRET}", "山：一", "海：二", keep=0)
    tell(graph, thread(), "雨：雨怎样？", "雨：现在呢？")
    files = [p for p in tmp_path.rglob("*.jsonl") if " plan " in p.read_text("utf-8")]
    assert {p.name for p in files} == {"ledger.jsonl", "turns.jsonl"}
    forget(tmp_path, graph)
    assert stored(tmp_path) == []
    assert [p for p in files if " plan " in p.read_text("utf-8")] == []
    names = [t.name for t in Memory.of(graph, thread()).topics()]
    assert names[:2] == ["雨", "topic t2"]


@pytest.mark.slow
def test_a_later_message_is_rewritten_by_it_no_more(tmp_path: Path) -> None:
    rewriter = FixedRole(lambda r: f"{r.text} ({SECRET})" if "几点" in r.text else r.text)
    graph = open_after(past("茶", "雨"), tmp_path, fake_roles(rewriter=rewriter))
    tell(graph, thread(), f"海：{SECRET}", "海：几点？", keep=4)
    tell(graph, thread(), *(f"山：{n}" for n in range(4)), keep=2)
    memory = Memory.of(graph, thread())
    later = next(m for m in memory.history() if m.text == "海：几点？")
    assert SECRET in str(later.query)
    forget(tmp_path, graph)
    assert stored(tmp_path) == []
    shown = Memory.of(graph, thread()).quote(later.id)
    assert shown == later.model_copy(update={"query": None})
    assert Memory.of(graph, thread()).forget(later.id).messages == (shown,)
    assert Memory.of(graph, thread()).quote(later.id).text == REMOVED


def name_by(name: str) -> Role[SplitRequest, tuple[Assignment, ...]]:
    """A splitter that takes everything for one topic."""

    def split(request: SplitRequest) -> Answer[tuple[Assignment, ...]] | tuple[Assignment, ...]:
        known = {t.name: t.id for t in request.topics}
        ids = [i for block in request.rounds for i in block.ids]
        return tuple(Assignment(message=i, topic=known.get(name), name=name) for i in ids)

    return FixedRole(split)


@pytest.mark.slow
@pytest.mark.parametrize("archived", [True, False])
def test_names_that_parts_inherited_are_gone(tmp_path: Path, archived: bool) -> None:
    roles = fake_roles(splitter=name_by(f"{SECRET} operation"))
    graph = open_graph(tmp_path, roles, topic_window=2_200)
    tell(graph, thread(), f"The doctor says I need the {SECRET} operation")
    tell(graph, thread(), *(chatter("茶", n, characters=120) for n in range(24)), keep=2)
    memory = Memory.of(graph, thread())
    filled = [t.id for t in memory.topics() if t.count]
    assert len(filled) > 2
    if archived:
        memory.archive(filled[-2])
    memory.rename(filled[-1], "茶")
    done = forget(tmp_path, graph)
    assert stored(tmp_path) == []
    topics = {t.id: t.name for t in Memory.of(graph, thread()).topics()}
    assert topics.pop(filled[-1]) == "茶"
    assert topics == {t: f"topic {t}" for t in topics}
    assert set(done.topics) >= set(topics)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["purge", "forget"])
def test_one_that_was_killed_beside_facts_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    facts = InMemoryStore()
    graph = open_graph(tmp_path, store=facts)
    tell(graph, thread(), f"茶：{SECRET}", "茶：再说", "雨：好", "山：嗯", keep=2)
    kept_facts = ReflectionStore(facts)
    kept_facts.change_facts("s", FactChanges((Fact(SECRET, ("m1",), "2026-03-02"),)))
    with monkeypatch.context() as patched:
        owner = SessionStore if step == "purge" else ReflectionStore
        patched.setattr(owner, step, lambda *_: exec("raise KeyboardInterrupt"))
        with pytest.raises(KeyboardInterrupt):
            Memory.of(graph, thread()).forget("m1")
    Memory.of(graph, thread()).forget("m1")
    assert stored(tmp_path) == []
    assert kept_facts.facts("s") == {}


def test_a_turn_that_is_not_finished_keeps_its_facts(tmp_path: Path) -> None:
    facts = InMemoryStore()
    graph = open_graph(tmp_path, store=facts)
    tell(graph, thread(), "茶：好")
    ReflectionStore(facts).change_facts("s", FactChanges((Fact("tea", ("m1",), "2026-03-02"),)))
    graph.update_state(thread(), {"messages": []}, as_node="assemble")
    with pytest.raises(InputError, match="not finished"):
        Memory.of(graph, thread()).forget("m1")
    assert len(ReflectionStore(facts).facts("s")) == 1


@pytest.mark.slow
def test_a_purge_that_was_killed_anywhere_is_finished(tmp_path: Path) -> None:
    """In files, each chain is written at once; a plan's chains are taken one after another."""
    roles = fake_roles(splitter=name_by(f"{SECRET} operation"))
    whole, saver = tmp_path / "whole", InMemorySaver()
    graph = open_graph(whole, roles, checkpointer=saver, topic_window=2_200)
    tell(graph, thread(), f"I need the {SECRET} operation")
    tell(graph, thread(), *(chatter("茶", n, characters=120) for n in range(16)), keep=2)
    graph.update_state(
        thread(), {"messages": [HumanMessage(f"The {SECRET} operation is over", id="u")]}
    )
    tell(graph, thread(), "好")
    session, store = open_session(graph, thread())
    numbers = [m.seq for m in store.messages(session) if SECRET in m.text]
    chains = list(store.plan_purge(session, numbers).entries)
    assert len(chains) >= 4
    for stop in range(1, len(chains)):
        folder = tmp_path / str(stop)
        copytree(whole, folder)
        graph = open_graph(folder, roles, checkpointer=copy_saver(saver), topic_window=2_200)
        session, store = open_session(graph, thread())
        plan = store.plan_purge(session, numbers)
        for chain, keep in list(plan.entries.items())[:stop]:
            store.log.purge(chain, list(keep), keep)
        assert Memory.of(graph, thread()).forget(*(f"m{n}" for n in numbers)).left == ()
        assert stored(folder) == []


@pytest.mark.slow
def test_replies_that_only_quote_it_go_with_it_and_nothing_of_it_is_found(tmp_path: Path) -> None:
    settings = Settings(folder=tmp_path, fsync=False)
    graph = build_session_graph(settings=settings).compile(checkpointer=InMemorySaver())
    for text in (f"My hotel is called {SECRET}.", "My tooth hurts.", "How is my hotel called?"):
        reply = tell(graph, thread(), text)[-1].text
    assert SECRET in reply
    quoted = (
        "No model is set. Closest to this in what was said:\n– 2026-03-01, you: “My tooth hurts.”"
    )
    tell(graph, thread(), f"Why did you write this?\n{quoted}")
    memory = Memory.of(graph, thread())
    assert "m7" not in [m.id for m in memory.forget("m3", dry_run=True).messages], "a user's words"
    assert [m.id for m in memory.forget("m1", dry_run=True).messages] == ["m1", "m6"]
    memory.forget("m1")
    assert stored(tmp_path) == []
    assert {hit.message.id for hit in memory.search(SECRET)} == {"m3", "m5", "m7"}
