"""Roles that never answer in time cost the user one deadline, once, not one each in every turn."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from sessions import open_after, past, tell, thread
from slow_roles import SlowRole

from topicloom import (
    BRIEF,
    SPLITTER,
    Answer,
    Brief,
    BriefRequest,
    LocalRole,
    Memory,
    Receipt,
    Roles,
)
from topicloom.hosting import Graph, find_deps
from topicloom.testing import fake_roles

CONFIG = thread()
DEADLINE = 0.2


def slow() -> Any:
    return SlowRole(seconds=5 * DEADLINE, deadline=DEADLINE)


def open_split(folder: Path, roles: Roles) -> Graph:
    """A session in which the next turn splits what was said."""
    return open_after(past("茶", "雨"), folder, roles, role_seconds=DEADLINE)


def newest_receipt(graph: Graph) -> Receipt:
    return Memory.of(graph, CONFIG).receipts(1)[0]


@pytest.mark.slow
def test_the_first_turn_waits_one_deadline_and_the_next_ones_none(tmp_path: Path) -> None:
    roles = fake_roles(reader=slow()).replace(SPLITTER, slow()).replace(BRIEF, slow())
    graph = open_split(tmp_path, roles)
    tell(graph, CONFIG, "茶的事情", keep=0)
    first = newest_receipt(graph)
    assert [(c.role, c.failure) for c in first.failures] == [("splitter", "no answer within 0.2 s")]
    assert set(first.unasked) == {"splitter", "brief", "reader"}
    assert first.unasked["splitter"] == "it was late in this turn"
    assert not any(call.skipped for call in first.calls)
    for _ in range(2):
        tell(graph, CONFIG, "茶的事情", keep=0)
        receipt = newest_receipt(graph)
        assert receipt.failures == ()
        assert "rests for" in receipt.unasked["reader"]
        assert set(receipt.scores) == {t.id for t in Memory.of(graph, CONFIG).topics()}


@pytest.mark.slow
async def test_so_it_is_on_the_event_loop(tmp_path: Path) -> None:
    roles = fake_roles(reader=slow()).replace(SPLITTER, slow()).replace(BRIEF, slow())
    graph = open_split(tmp_path, roles)
    failed = list[int]()
    for _ in range(3):
        await graph.ainvoke({"messages": [("user", "茶的事情 " * 60)]}, CONFIG)
        failed.append(len(newest_receipt(graph).failures))
    assert sum(failed) == 1
    assert "reader" in newest_receipt(graph).unasked


@dataclass
class LateWriter(LocalRole[BriefRequest, Brief]):
    """Writes briefs once it may: the turn goes on without them."""

    may: Event = field(default_factory=Event)
    deadline: float | None = 60.0
    model: str = "slow"
    name: str = ""
    """The name that it gives all topics; each is given its own if this is empty."""

    def call(self, request: BriefRequest) -> Answer[Brief]:
        assert self.may.wait(30)
        name = self.name or f"Late {request.topic.id}"
        return Answer(Brief(name, "Written in its own time."))

    def write(self, graph: Graph) -> None:
        """Let the briefs of two topics come."""
        self.may.set()
        late = find_deps(graph).workspaces.open("s").late_briefs
        deadline = time.monotonic() + 20
        while len(late) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)


@pytest.mark.slow
def test_a_brief_that_comes_late_is_there_in_the_next_turn(tmp_path: Path) -> None:
    writer = LateWriter()
    graph = open_split(tmp_path, fake_roles().replace(BRIEF, writer))
    tell(graph, CONFIG, "茶的事情", keep=0)
    assert {t.name for t in Memory.of(graph, CONFIG).topics()} == {"茶", "雨"}
    writer.write(graph)
    tell(graph, CONFIG, "雨的事情")
    topics = Memory.of(graph, CONFIG).topics()
    assert {t.name for t in topics} == {"Late t1", "Late t2"}
    assert {t.brief for t in topics} == {"Written in its own time."}


def test_a_late_brief_of_a_topic_that_has_changed_since_is_dropped(tmp_path: Path) -> None:
    writer = LateWriter()
    graph = open_split(tmp_path, fake_roles().replace(BRIEF, writer))
    tell(graph, CONFIG, "茶的事情", keep=0)
    memory = Memory.of(graph, CONFIG)
    memory.archive("t1")
    memory.rename("t2", "Rain")
    tell(graph, CONFIG, "雨的事情")
    before = {t.id: t.brief for t in Memory.of(graph, CONFIG).topics()}
    writer.write(graph)
    tell(graph, CONFIG, "雨的事情")
    topics = Memory.of(graph, CONFIG).topics()
    assert {t.id: t.brief for t in topics} == before
    assert {t.name for t in topics} == {"茶", "Rain"}


@pytest.mark.parametrize("name", ["Tea", "雨"])
def test_late_briefs_leave_names_of_other_topics_alone(tmp_path: Path, name: str) -> None:
    writer = LateWriter(name=name)
    graph = open_split(tmp_path, fake_roles().replace(BRIEF, writer))
    tell(graph, CONFIG, "茶的事情", keep=0)
    writer.write(graph)
    tell(graph, CONFIG, "雨的事情")
    topics = Memory.of(graph, CONFIG).topics()
    assert {t.brief for t in topics} == {"Written in its own time."}
    assert len({t.name for t in topics}) == 2, "none takes a name that another has or is given"


@pytest.mark.slow
def test_a_late_brief_of_what_was_purged_is_dropped(tmp_path: Path) -> None:
    writer = LateWriter()
    graph = open_split(tmp_path, fake_roles().replace(BRIEF, writer))
    tell(graph, CONFIG, "茶的事情", keep=0)
    memory = Memory.of(graph, CONFIG)
    memory.forget(memory.topic("t1").messages()[0].id)
    writer.write(graph)
    tell(graph, CONFIG, "雨的事情")
    assert not [t.name for t in Memory.of(graph, CONFIG).topics() if t.name.startswith("Late")]


@pytest.mark.slow
def test_roles_that_answer_are_waited_for(tmp_path: Path) -> None:
    writer = LateWriter()
    writer.may.set()
    graph = open_after(
        past("茶", "雨"), tmp_path, fake_roles().replace(BRIEF, writer), role_seconds=20
    )
    tell(graph, CONFIG, "茶的事情", keep=0)
    assert {t.name for t in Memory.of(graph, CONFIG).topics()} == {"Late t1", "Late t2"}
    assert newest_receipt(graph).unasked == {}
