"""What is done again after storage failed, and what no checkpoint can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest
from langchain_core.messages import AIMessageChunk, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from sessions import check_kept, kept, open_graph, tell, thread, transcript_of

from topicloom import (
    FileStorage,
    NoNewMessageError,
    ReplyError,
    StorageUnavailableError,
    get_session,
)
from topicloom.hosting import Graph
from topicloom.storage.files import FileBackend
from topicloom.testing import ScriptedResponder, fake_roles

CONFIG = thread()


class FlakyStorage(FileStorage):
    """Files of which the next few writes fail."""

    failures = 0

    def backend(self, session: str) -> FileBackend:
        backend = super().backend(session)
        vars(backend)["lock"] = partial(self._fail, backend.lock)
        return backend

    @contextmanager
    def _fail(
        self, lock: Callable[..., AbstractContextManager[None]], *, create: bool
    ) -> Iterator[None]:
        if create and self.failures:
            self.failures -= 1
            raise StorageUnavailableError("input/output error")
        with lock(create=create):
            yield


def test_a_write_that_fails_once_is_tried_again(tmp_path: Path) -> None:
    storage = FlakyStorage(tmp_path, fsync=False)
    graph = open_graph(tmp_path, storage=storage)
    tell(graph, CONFIG, "One")
    storage.failures = 1
    tell(graph, CONFIG, "Two")
    assert storage.failures == 0
    assert [m.text for m in transcript_of(tmp_path, graph, CONFIG)][::2] == ["One", "Two"]


def _fail_at_the_end(graph: Graph, said: Sequence[AnyMessage], receipts: Path) -> None:
    away = receipts.with_suffix(".away")
    receipts.rename(away)
    receipts.mkdir()
    with pytest.raises(StorageUnavailableError):
        graph.invoke({"messages": said}, CONFIG)
    receipts.rmdir()
    away.rename(receipts)


def test_a_message_that_is_edited_after_its_turn_failed_is_answered_anew(tmp_path: Path) -> None:
    responder = ScriptedResponder("One?", "Two?", "Too!", "Three.")
    graph = open_graph(tmp_path, fake_roles(responder))
    tell(graph, CONFIG, "One")
    _fail_at_the_end(graph, [HumanMessage("Two", id="2")], tmp_path / "s" / "turns.jsonl")
    edited = graph.invoke({"messages": [HumanMessage("Too", id="2")]}, CONFIG)
    assert [m.text for m in edited["messages"]] == ["One", "One?", "Too", "Too!"]
    tell(graph, CONFIG, "Three")
    said = [m.text for m in transcript_of(tmp_path, graph, CONFIG)]
    assert said == ["One", "One?", "Too", "Too!", "Three", "Three."]


@pytest.mark.parametrize(("failures", "again"), [(1, True), (3, True), (3, False)])
def test_a_turn_that_fails_at_its_end_is_closed_when_it_is_sent_again(
    tmp_path: Path, failures: int, again: bool
) -> None:
    graph = open_graph(tmp_path)
    tell(graph, CONFIG, "One")
    said = {"messages": [HumanMessage("Two", id="two")]}
    for _ in range(failures):
        _fail_at_the_end(graph, said["messages"], tmp_path / "s" / "turns.jsonl")
    closed = graph.invoke(said if again else None, CONFIG)
    assert closed["messages"][-1].content == "All right, noted."
    with pytest.raises(NoNewMessageError):
        graph.invoke(said, CONFIG)
    tell(graph, CONFIG, "Three")
    session = get_session(graph, CONFIG)
    store = kept(tmp_path, session)
    assert [m.text for m in check_kept(store, session)][::2] == ["One", "Two", "Three"]
    told = store.receipts(session)
    assert [(r.turn, r.user) for r in told] == [(1, "m1"), (2, "m3"), (3, "m5")]
    assert all([c.role for c in r.calls] == ["responder"] for r in told)


def test_half_a_character_is_the_same_wherever_a_turn_is_killed(tmp_path: Path) -> None:
    """A checkpoint holds "?" for it: a turn that went on from there kept another message."""
    broken = [AIMessageChunk(content="Well \ud83d"), AIMessageChunk(content="\ude00 \udc00")]
    responder = ScriptedResponder(RuntimeError("no"), broken)
    graph = open_graph(tmp_path, fake_roles(responder), reply_attempts=1)
    said = HumanMessage("half \ud83d of it, and a whole \ud83d\ude00", id="a")
    with pytest.raises(ReplyError):
        graph.invoke({"messages": [said]}, CONFIG)
    graph.invoke(None, CONFIG)
    whole = ["half \ufffd of it, and a whole 😀", "Well 😀 \ufffd"]
    assert [m.text for m in transcript_of(tmp_path, graph, CONFIG)] == whole
    assert [m.content for m in graph.get_state(CONFIG).values["messages"]] == whole


def test_what_was_accepted_before_a_kill_is_what_is_kept(tmp_path: Path) -> None:
    """The checkpoint of the input is all there is of a message before `ingest`."""
    saver = InMemorySaver()
    graph: Graph = open_graph(tmp_path, checkpointer=saver)
    stopped = {"messages": [HumanMessage("half \ud83d of it", id="a")]}
    graph.invoke(stopped, CONFIG, interrupt_before=["ingest"])
    open_graph(tmp_path, checkpointer=saver).invoke(None, CONFIG)
    (first, _) = transcript_of(tmp_path, graph, CONFIG)
    assert first.text == "half \ufffd of it"
