"""A step that fails at any write is done once: the session is as if nothing had happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from examples import FEW, TAGS, fresh, weather
from hypothesis import given, settings, strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from sessions import (
    chatter,
    check_kept,
    kept,
    open_graph,
    prompt_of,
    thread,
)

from topicloom.graph.stored import Graph, get_session
from topicloom.storage.files import FileStorage
from topicloom.testing import (
    NameRouter,
    ScriptedReply,
    ScriptedResponder,
    fake_roles,
    make_tool_call,
    make_topic_search,
)


class Crash(Exception):
    """Stands for the end of a process."""


class FailingLog:
    """A log whose n-th append fails, before or after it is written."""

    def __init__(self, storage: FailingStorage, log: Any) -> None:
        self._storage, self._log = storage, log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, chain: str, head: str | None, bodies: Sequence[Any]) -> str | None:
        storage = self._storage
        storage.appends += 1
        due = storage.appends == storage.fail_at
        if due and not storage.afterwards:
            raise storage.error
        new: str | None = self._log.append(chain, head, bodies)
        if due:
            raise storage.error
        return new


class FailingStorage:
    """A storage whose n-th append fails."""

    def __init__(
        self, folder: Path, fail_at: int = 0, *, afterwards: bool = False, error: Exception
    ) -> None:
        self._storage = FileStorage(folder, fsync=False)
        self.appends = 0
        self.fail_at = fail_at
        self.afterwards = afterwards
        self.error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def open(self, session: str) -> Any:
        return FailingLog(self, self._storage.open(session))


SMALL_TOPICS = {"topic_window": 1_000, "topic_share": 0.15}
"""Topics so small that they are divided into parts."""


def story(
    folder: Path, storage: FailingStorage, durability: Any, **options: Any
) -> tuple[list[str], list[Any]]:
    """Twelve turns with splits, tools and a search, over a storage that may fail once."""
    script: list[ScriptedReply] = [
        "一",
        "二",
        make_tool_call("weather", {"city": "北京"}),
        "三",
        *"四五六七八九",
    ]
    script += [make_topic_search("茶"), "十"]
    responder = ScriptedResponder(*script)
    saver = InMemorySaver()

    def opened() -> Graph:
        """The graph as a new process would open it."""
        roles = fake_roles(Patient(responder), router=NameRouter({"茶": 0.9}))
        return open_graph(
            folder,
            roles,
            storage=storage,
            checkpointer=saver,
            tools=[weather],
            window=1_900,
            **options,
        )

    graph = opened()
    for n in range(12):
        said = {"messages": [HumanMessage(chatter(TAGS[n % 3], n, characters=140), id=f"i{n}")]}
        try:
            graph.invoke(said, thread(), durability=durability)
        except Crash:
            graph = opened()
            pending = [task.name for task in graph.get_state(thread()).tasks]
            # A crash before the first checkpoint leaves nothing to go on with: say it again.
            again = None if pending and "__start__" not in pending else said
            graph.invoke(again, thread(), durability=durability)
    session = get_session(graph, thread())
    store = kept(folder, session)
    transcript = check_kept(store, session)
    topics = [
        (t.name, t.count, [r.id for r in store.topic_messages(t)])
        for t in store.topic_table(session)
    ]
    assert [r.turn for r in store.receipts(session)] == list(range(1, 13))
    return [r.text for r in transcript], topics


class Patient:
    """A responder that says the same again when it is asked the same again."""

    model = "patient"

    def __init__(self, responder: ScriptedResponder) -> None:
        self._responder = responder
        self._said: dict[str, list[Any]] = {}

    def stream(self, request: Any) -> Iterator[Any]:
        key = prompt_of(request)
        if key not in self._said:
            self._said[key] = list(self._responder.stream(request))
        yield from self._said[key]

    async def astream(self, request: Any) -> Any:
        for chunk in self.stream(request):
            yield chunk


class TestIdempotent:
    def test_the_story_splits_and_searches(self, tmp_path: Path) -> None:
        storage = FailingStorage(tmp_path, error=Crash())
        texts, topics = story(tmp_path, storage, "sync")
        assert len(texts) == 26
        assert len(topics) == 3
        assert "十" in texts
        assert storage.appends > 50

    @settings(FEW, max_examples=14)
    @given(st.integers(1, 55), st.booleans(), st.sampled_from(["sync", "async", "exit"]))
    def test_after_a_crash_anywhere_nothing_is_lost_or_twice(
        self, tmp_path: Path, fail_at: int, afterwards: bool, durability: str
    ) -> None:
        whole = story(f := fresh(tmp_path), FailingStorage(f, error=Crash()), durability)
        storage = FailingStorage(
            f := fresh(tmp_path), fail_at, afterwards=afterwards, error=Crash()
        )
        assert story(f, storage, durability) == whole

    @settings(FEW, max_examples=10)
    @given(st.integers(15, 90), st.booleans())
    def test_after_a_crash_in_a_division_nothing_is_lost_or_twice(
        self, tmp_path: Path, fail_at: int, afterwards: bool
    ) -> None:
        storage = FailingStorage(f := fresh(tmp_path), error=Crash())
        whole = story(f, storage, "sync", **SMALL_TOPICS)
        assert storage.appends > 90
        assert [t for t in whole[1] if t[1] == 0], "some topic was divided"
        storage = FailingStorage(
            f := fresh(tmp_path), fail_at, afterwards=afterwards, error=Crash()
        )
        assert story(f, storage, "sync", **SMALL_TOPICS) == whole

    @settings(FEW, max_examples=8)
    @given(st.integers(1, 55))
    def test_a_node_that_is_run_twice_adds_nothing_twice(
        self, tmp_path: Path, fail_at: int
    ) -> None:
        """The node is run again at once, by its retry policy, after all was written."""
        whole = story(f := fresh(tmp_path), FailingStorage(f, error=OSError()), "sync")
        error = OSError("disk full for a moment")
        storage = FailingStorage(f := fresh(tmp_path), fail_at, afterwards=True, error=error)
        assert story(f, storage, "sync") == whole
