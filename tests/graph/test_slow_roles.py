"""Roles that never answer in time cost the user one deadline, once, not one each in every turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sessions import open_after, past, tell, thread

from topicloom import (
    BRIEF,
    SPLITTER,
    Brief,
    Memory,
    Receipt,
    Roles,
)
from topicloom.hosting import Graph
from topicloom.testing import FixedRole, SlowRole, fake_roles

CONFIG = thread()
DEADLINE = 0.2


def slow() -> Any:
    return SlowRole(seconds=5 * DEADLINE, deadline=DEADLINE)


def open_split(folder: Path, roles: Roles) -> Graph:
    """A session in which the next turn splits what was said."""
    return open_after(past("茶", "雨"), folder, roles, role_seconds=DEADLINE)


def newest_receipt(graph: Graph) -> Receipt:
    return Memory.of(graph, CONFIG).receipts(1)[0]


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


async def test_so_it_is_on_the_event_loop(tmp_path: Path) -> None:
    roles = fake_roles(reader=slow()).replace(SPLITTER, slow()).replace(BRIEF, slow())
    graph = open_split(tmp_path, roles)
    failed = list[int]()
    for _ in range(3):
        await graph.ainvoke({"messages": [("user", "茶的事情 " * 60)]}, CONFIG)
        failed.append(len(newest_receipt(graph).failures))
    assert sum(failed) == 1
    assert "reader" in newest_receipt(graph).unasked


def test_roles_that_answer_are_waited_for(tmp_path: Path) -> None:
    writer = FixedRole(lambda request: Brief(f"Written {request.topic.id}", "In its own time."))
    writer.deadline = 60.0
    roles = fake_roles().replace(BRIEF, writer)
    graph = open_after(past("茶", "雨"), tmp_path, roles, role_seconds=20)
    tell(graph, CONFIG, "茶的事情", keep=0)
    assert {t.name for t in Memory.of(graph, CONFIG).topics()} == {"Written t1", "Written t2"}
    assert newest_receipt(graph).unasked == {}
