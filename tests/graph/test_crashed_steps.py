"""A step that fails at any write is done once: the session is as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from examples import few, fresh
from failing_storage import Crash, FailingStorage
from faults.checker import Said
from faults.stages import FilesStage, Opened
from faults.talk import CONFIG, SPLITS, expected, finish, make_graph, say
from hypothesis import given, strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from sessions import check_kept, kept

from topicloom import get_session

pytestmark = pytest.mark.long

TURNS = 12


SMALL_TOPICS = {"window": 1_900, "topic_window": 1_000, "topic_share": 0.15}
"""Topics so small that they are divided into parts."""
Kept = tuple[list[Said], list[Any]]
"""The conversation, and each topic with the ids of its messages."""
Whole = Callable[..., Kept]


def story(folder: Path, storage: FailingStorage, durability: Any, **changes: Any) -> Kept:
    """Twelve turns with splits, tools and searches, over a storage that may fail once."""
    kept_by: Any = storage
    stage, opened = FilesStage(folder), Opened(InMemorySaver(), InMemoryStore(), kept_by)
    graph = make_graph(stage, opened, **changes)
    for number in range(TURNS):
        turn = {"durability": durability, "keep_messages": 4 if number in SPLITS else None}
        try:
            say(graph, number, patient=False, **turn)
        except Crash:
            graph = make_graph(stage, opened, **changes)  # as a new process would open it
            if not finish(graph, **turn):
                say(graph, number, patient=False, **turn)
    session = get_session(graph, CONFIG)
    store = kept(folder, session)
    said: list[Said] = [(r.role, r.text) for r in check_kept(store, session)]
    topics = [
        (t.name, t.count, [r.id for r in store.topic_messages(session, t)])
        for t in store.topic_table(session)
    ]
    assert [r.turn for r in store.receipts(session)] == list(range(1, TURNS + 1))
    return said, topics


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The story without a crash, told once for each way to tell it."""

    @cache
    def told(durability: str, *, divided: bool = False) -> Kept:
        folder = tmp_path_factory.mktemp("whole")
        storage = FailingStorage(folder)
        kept = story(folder, storage, durability, **(SMALL_TOPICS if divided else {}))
        assert kept[0] == expected(TURNS)
        assert storage.appends > (90 if divided else 55)
        assert bool([t for t in kept[1] if t[1] == 0]) == divided, "topics are divided, or not"
        return kept

    return told


class TestIdempotent:
    def test_the_story_splits(self, whole: Whole) -> None:
        assert len(whole("sync")[1]) == 3

    @few(8)
    @given(st.integers(1, 55), st.booleans(), st.sampled_from(["sync", "async", "exit"]))
    def test_after_a_crash_anywhere_nothing_is_lost_or_twice(
        self, tmp_path: Path, whole: Whole, fail_at: int, afterwards: bool, durability: str
    ) -> None:
        storage = FailingStorage(f := fresh(tmp_path), fail_at, afterwards=afterwards)
        assert story(f, storage, durability) == whole(durability)

    @few(6)
    @given(st.integers(15, 90), st.booleans())
    def test_after_a_crash_in_a_division_nothing_is_lost_or_twice(
        self, tmp_path: Path, whole: Whole, fail_at: int, afterwards: bool
    ) -> None:
        storage = FailingStorage(f := fresh(tmp_path), fail_at, afterwards=afterwards)
        assert story(f, storage, "sync", **SMALL_TOPICS) == whole("sync", divided=True)

    @few(5)
    @given(st.integers(1, 55))
    def test_a_node_that_is_run_twice_adds_nothing_twice(
        self, tmp_path: Path, whole: Whole, fail_at: int
    ) -> None:
        """The node is run again at once, by its retry policy, after all was written."""
        error = OSError("disk full for a moment")
        storage = FailingStorage(f := fresh(tmp_path), fail_at, afterwards=True, error=error)
        assert story(f, storage, "sync") == whole("sync")
