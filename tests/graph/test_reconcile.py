"""What others left is settled before a turn takes anything in, and nothing is done without need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from sessions import last_receipt, open_graph, tell, thread, transcript_of

from topicloom import FileStorage, ReplyError, StorageUnavailableError
from topicloom.storage.base import TIPS
from topicloom.storage.files import FileBackend
from topicloom.storage.jsonl import ChainFile
from topicloom.testing import ScriptedResponder, fake_roles


class Unreadable(FileStorage):
    """Files in which nobody can see, a few times, what others wrote."""

    failures = 0

    def backend(self, session: str) -> FileBackend:
        backend = super().backend(session)
        entries = backend.entries

        def read(chain: str) -> ChainFile:
            if chain == TIPS and self.failures:
                self.failures -= 1
                raise StorageUnavailableError("input/output error")
            return entries(chain)

        vars(backend)["entries"] = read
        return backend


def updates_of(graph: Any, text: str) -> dict[str, Any]:
    """What each node wrote in a turn."""
    said = {"messages": [HumanMessage(text)]}
    return {
        node: update
        for part in graph.stream(said, thread(), stream_mode="updates")
        for node, update in part.items()
    }


def test_in_the_usual_turn_it_has_no_part(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    for text in ("Hello", "And now?"):
        assert next(iter(updates_of(graph, text))) == "ingest"


def test_what_it_settled_is_told_though_the_run_stopped_behind_it(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    first = tell(graph, thread(), "Hello", "The key is under the mat.")[0]
    graph.update_state(thread(), {"messages": [RemoveMessage(id=str(first.id))]})
    graph.invoke({"messages": [HumanMessage("A")]}, thread(), interrupt_before=["ingest"])
    tell(graph, thread(), "B")
    receipt = last_receipt(tmp_path, graph, thread())
    assert [e for e in receipt.events if "m1" in e] == [
        "edited by the application: out of view: m1"
    ]
    assert [m.text for m in transcript_of(tmp_path, graph, thread())][-3:-1] == ["A", "B"]


def test_a_turn_that_failed_leaves_no_calls(tmp_path: Path) -> None:
    graph = open_graph(
        tmp_path, fake_roles(ScriptedResponder(RuntimeError("no"))), reply_attempts=1
    )
    with pytest.raises(ReplyError):
        tell(graph, thread(), "Hello")
    updates = updates_of(graph, "Are you there?")
    assert updates["reconcile"]["turn"]["silent"]
    receipt = last_receipt(tmp_path, graph, thread())
    assert [call.role for call in receipt.calls] == ["responder"]


@pytest.mark.parametrize("failures", [1, 2])
def test_where_nobody_can_see_what_is_left_the_node_looks_again(
    tmp_path: Path, failures: int
) -> None:
    storage = Unreadable(tmp_path, fsync=False)
    graph = open_graph(tmp_path, storage=storage)
    tell(graph, thread(), "One")
    storage.failures = failures
    updates = updates_of(graph, "Two")
    assert list(updates)[:2] == ["reconcile", "ingest"]
    assert storage.failures == 0
    assert [m.text for m in transcript_of(tmp_path, graph, thread())][::2] == ["One", "Two"]
    assert last_receipt(tmp_path, graph, thread()).events == ()
