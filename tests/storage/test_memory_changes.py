"""What `Memory` changes, on every storage, through a graph and through the storage alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from sessions import check_kept, past, record, tell, thread

from topicloom import (
    Fact,
    FactChanges,
    InputError,
    Memory,
    MemoryTopic,
    ReflectionStore,
    SessionStore,
    Settings,
    Storage,
    TurnOptions,
    build_session_graph,
    get_session,
)
from topicloom.hosting import Graph
from topicloom.testing import Clock, fake_roles

Reopen = Callable[[], Storage]
CONFIG = thread()


class Talk:
    """A session of the topics 茶 (m1-m6), 雨 (m7-m12) and 山 (m13-m18), with a tail."""

    def __init__(self, reopen: Reopen, way: str = "graph") -> None:
        self.reopen, self.way, self.facts = reopen, way, InMemoryStore()
        settings = Settings.model_validate({"window": 2_000, "fsync": False})
        self.graph: Graph = build_session_graph(
            settings=settings, roles=fake_roles(), storage=reopen(), clock=Clock()
        ).compile(checkpointer=InMemorySaver(), store=self.facts)
        record(self.graph, CONFIG, *past("茶", "雨", "山", rounds=3))
        tell(self.graph, CONFIG, "海：还有吗？", keep=0)

    @property
    def memory(self) -> Memory:
        if self.way == "graph":
            return Memory.of(self.graph, CONFIG, author="ann")
        return Memory(self.reopen(), "s", store=self.facts, author="ann", clock=Clock())

    def check(self) -> dict[str, list[str]]:
        """Messages by the names of topics; what must always hold is checked."""
        check_kept(SessionStore(self.reopen().open("s")), self.memory.session())
        return {t.name: [m.id for m in t.messages()] for t in self.memory.topics()}


QUICK = ("files graph", "dicts storage")
SLOW = ("files storage", "sqlite graph")
"""With these, every storage that asks for code of its own, and both ways."""
WAYS = [
    pytest.param(
        way,
        marks=() if way in QUICK else pytest.mark.slow if way in SLOW else pytest.mark.long,
    )
    for kind in ("files", "memory", "sqlite", "postgres", "dicts")
    for way in (f"{kind} graph", f"{kind} storage")
]


@pytest.fixture(params=WAYS)
def talk(make_reopen: Callable[[str], Reopen], request: pytest.FixtureRequest) -> Talk:
    kind, way = request.param.split()
    return Talk(make_reopen(kind), way)


def ids(first: int, last: int) -> list[str]:
    return [f"m{n}" for n in range(first, last + 1)]


@pytest.mark.slow
def test_a_chain_of_changes_and_back(talk: Talk) -> None:
    before, days = talk.check(), talk.memory.session()
    memory = talk.memory
    assert memory.rename("t1", " Tea\nhouse ").name == "Tea house"
    kitchen = memory.split("t2", "m9", "Second rain")
    assert (kitchen.id, kitchen.count, kitchen.state) == ("t4", 2, "active")
    assert memory.move(["m13", "m16"], "t1").count == 10
    assert memory.merge("t4", into="t3").count == 4
    assert memory.pin("t3").by_hand == ("pinned", "sorted")
    assert memory.archive("t2").state == "archived"
    assert memory.restore("t2").by_hand == ("restored",)
    assert talk.check() == {
        "Tea house": [*ids(1, 6), *ids(13, 16)],
        "雨": [*ids(7, 8), *ids(11, 12)],
        "山": [*ids(9, 10), *ids(17, 18)],
    }
    entries = memory.changes()
    assert {entry.author for entry in entries} == {"ann"}
    assert entries[0].event == "ann: renamed t1 “茶” to “Tea house”"
    assert [memory.undo().id for _ in entries] == [entry.id for entry in reversed(entries)]
    assert talk.check() == before
    # No review merges what a person has parted again.
    by_hand = {t.id: t.by_hand for t in memory.topics() if t.by_hand}
    assert by_hand == {"t3": ("sorted",)}
    assert all(entry.undone or entry.undoes for entry in memory.changes())
    with pytest.raises(InputError, match="nothing to undo"):
        memory.undo()
    assert memory.session().tail == days.tail


@pytest.mark.slow
def test_turns_go_on_from_a_change(talk: Talk) -> None:
    talk.memory.rename("t1", "Tea house")
    turn = talk.memory.session().turn
    tell(talk.graph, CONFIG, "海：第二次。", "海：第三次。")
    session = get_session(talk.graph, CONFIG)
    assert session.turn == turn + 2
    assert "Tea house" in talk.check()
    assert talk.memory.changes()[0].author == "ann"


@pytest.mark.slow
def test_what_cannot_be_done_is_said_and_changes_nothing(talk: Talk) -> None:
    memory, before = talk.memory, talk.check()
    changes: list[tuple[Callable[[], object], str]] = [
        (lambda: memory.rename("t9", "x"), "no topic 't9'"),
        (lambda: memory.rename("t1", "  "), "needs a name"),
        (lambda: memory.rename("t1", "雨"), "t2 is called “雨”"),
        (lambda: memory.move("m99", "t1"), "no message 'm99'"),
        (lambda: memory.move("m19", "t1"), "m19 is in no topic yet"),
        (lambda: memory.split("t1", "m7", "x"), "m7 is not in t1"),
        (lambda: memory.merge("t1", "t1"), "merged into itself"),
        (lambda: memory.restore("t1"), "t1 is active, not archived"),
        (lambda: memory.move("m1", "t1") and memory.move("m1", "t1"), "nothing would change"),
        (lambda: memory.undo("nothing"), "nothing to undo by the id 'nothing'"),
        (lambda: memory.move("m1 m99", "t1"), "no message 'm99'"),
        (lambda: memory.move("m3 – m1", "t1"), "write m1-m3"),
        (lambda: memory.quote("m" + "1" * 5_000), "no message"),
        (lambda: memory.forget("t9"), "no topic 't9'"),
    ]
    for change, why in changes:
        with pytest.raises(InputError, match=why):
            change()
    assert talk.check() == before
    assert len(memory.changes()) == 1, "that m1 is in t1 is by hand from now on"
    with pytest.raises(InputError, match="author"):
        Memory(talk.reopen(), "s", author="review")


@pytest.mark.slow
def test_what_was_changed_since_is_not_undone(talk: Talk) -> None:
    memory = talk.memory
    memory.rename("t1", "Tea")
    memory.rename("t1", "Tea house")
    first, _ = memory.changes()
    with pytest.raises(InputError, match="everything was changed since"):
        memory.undo(first.id)
    assert memory.topic("t1").by_hand == ("named",)
    memory.move("m7", "t1")
    memory.merge("t2", "t1")
    *_, moved, _ = memory.changes()
    with pytest.raises(InputError, match="t2 is merged"):
        memory.undo(moved.id)
    memory.undo()
    memory.undo(moved.id)
    assert talk.check() == {"Tea house": ids(1, 6), "雨": ids(7, 12), "山": ids(13, 18)}


@pytest.mark.slow
def test_a_pinned_topic_stays_active(talk: Talk) -> None:
    talk.memory.archive("t1")
    talk.memory.restore("t1")
    assert talk.memory.topic("t1").state == "dormant"
    assert talk.memory.pin("t1").state == "active"
    for number in range(6):
        tell(talk.graph, CONFIG, f"海：第{number}次。")
    assert talk.memory.topic("t1").state == "active"
    assert talk.memory.pin("t1", pinned=False).by_hand == ("restored",)


@pytest.mark.slow
def test_forgetting_says_first_what_goes(talk: Talk) -> None:
    kept = ReflectionStore(talk.facts)
    fact = Fact("drinks tea", ("m3",), "2026-03-02")
    kept.change_facts("s", FactChanges((fact,), ()))
    talk.memory.rename("t1", "家")
    said = talk.memory.quote("m3").text
    shown = talk.memory.forget("m3-m4", "t2", dry_run=True)
    assert [m.id for m in shown.messages] == ["m3", "m4", *ids(7, 12)]
    assert (shown.topics, list(shown.facts.values())) == (("t1", "t2"), [fact])
    assert talk.memory.quote("m3").text == said
    done = talk.memory.forget("m3-m4", "t2")
    assert bool(done.left) == (talk.way == "storage")
    assert talk.memory.quote("m3").text != said
    assert talk.memory.facts() == {}
    names = {t.id: t.name for t in talk.memory.topics()}
    assert names == {"t1": "家", "t2": "topic t2", "t3": "山"}
    assert [change.event for change in talk.memory.changes()] == ["ann: renamed t1 “…” to “…”"]
    talk.check()
    talk.memory.delete()
    assert "s" not in talk.reopen().sessions()
    assert kept.facts("s") == {}


@pytest.mark.slow
def test_an_old_checkpoint_begins_a_branch(reopen: Reopen) -> None:
    talk = Talk(reopen)
    old = talk.graph.get_state(CONFIG).config
    tell(talk.graph, CONFIG, "海：第二次。")
    branch = Memory.of(talk.graph, old)
    branch.rename("t1", "Tea house")
    assert branch.session().count == 20
    assert branch.topic("t1").name == "Tea house"
    later = next(
        s.config for s in talk.graph.get_state_history(CONFIG) if s.values["session"]["count"] == 22
    )
    assert Memory.of(talk.graph, later).topic("t1").name == "茶"


@pytest.mark.slow
def test_one_changes_while_another_takes_a_turn(reopen: Reopen) -> None:
    talk = Talk(reopen)

    def change(number: int) -> list[MemoryTopic]:
        memory = Memory(reopen(), "s", author="ann")
        memory.rename(f"t{number}", f"name {number}")
        return memory.topics()

    parts = talk.graph.stream({"messages": [HumanMessage("海：第二次。")]}, CONFIG)
    next(parts)  # the turn is under way
    change(1)
    change(2)
    list(parts)
    names = [t.name for t in Memory.of(talk.graph, CONFIG).topics()]
    assert names == ["name 1", "name 2", "山"]
    assert Memory.of(talk.graph, CONFIG).history(limit=2)[0].text == "海：第二次。"
    talk.check()


@pytest.mark.slow
def test_a_turn_that_is_not_finished_has_to_be_finished_first(reopen: Reopen) -> None:
    talk = Talk(reopen)
    said = {"messages": [HumanMessage("海？")]}
    stream: Any = talk.graph.stream(said, CONFIG, durability="sync")
    next(stream)
    stream.close()
    with pytest.raises(InputError, match="is not finished"):
        talk.memory.rename("t1", "Tea house")
    talk.graph.invoke(None, CONFIG, context=TurnOptions())
    assert talk.memory.rename("t1", "Tea house").name == "Tea house"


async def test_changes_on_the_event_loop(talk: Talk) -> None:
    assert (await talk.memory.arename("t1", "Tea house")).name == "Tea house"
    assert (await talk.memory.aundo()).event == "ann: renamed t1 “茶” to “Tea house”"
    assert (await talk.memory.atopic("t1")).name == "茶"
    assert (await talk.memory.aforget("m1", dry_run=True)).messages


def test_a_change_is_made_at_the_time_of_its_clock(talk: Talk) -> None:
    memory = talk.memory
    memory.rename(talk.memory.topics()[0].id, "绿茶")
    assert memory.receipts()[-1].started[:10] == Clock().now.date().isoformat()
