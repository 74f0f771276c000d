"""A session that version 0.1.0 wrote goes on: nodes have other names since, the state has not.

The folder beside this file holds the newest checkpoint of a session that was at rest after nine
turns, as LangGraph serialised it, and its storage.
"""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from shutil import copytree

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from sessions import check_kept, kept, last_receipt, open_graph, prompt_of, thread

from topicloom.memory.stored import get_session
from topicloom.nodes.step import dump
from topicloom.testing import ScriptedResponder, fake_roles

WRITTEN = Path(__file__).parent / "written_by_0_1_0"


def old_checkpoint() -> InMemorySaver:
    """A checkpointer that holds what 0.1.0 left."""
    rows = json.loads((WRITTEN / "checkpoint.json").read_text())
    loads = JsonPlusSerializer().loads_typed
    parts = {name: loads((kind, b64decode(text))) for name, (kind, text) in rows.items()}
    checkpoint = parts["checkpoint"]
    saver = InMemorySaver()
    saver.put(
        {"configurable": {"thread_id": "s", "checkpoint_ns": ""}},
        checkpoint,
        parts["metadata"],
        checkpoint["channel_versions"],
    )
    return saver


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_the_next_turn(tmp_path: Path, asynchronous: bool) -> None:
    folder = Path(copytree(WRITTEN / "sessions", tmp_path / "sessions"))
    responder = ScriptedResponder()
    graph = open_graph(
        folder, fake_roles(responder=responder), checkpointer=old_checkpoint(), window=1_000
    )
    before = get_session(graph, thread())
    assert graph.get_state(thread()).next == ()
    told = {"messages": [HumanMessage("You forgot what I told you about the kiln.")]}
    if asynchronous:
        await graph.ainvoke(told, thread())
    else:
        graph.invoke(told, thread())
    after = get_session(graph, thread())
    assert graph.get_state(thread()).next == ()
    assert (before.turn, after.turn) == (9, 10)
    assert (before.count, after.count) == (18, 20)
    assert "The kiln in the cellar fires at 1240 degrees." in prompt_of(responder.requests[-1])
    assert last_receipt(folder, graph, thread()).searches
    texts = [r.text for r in check_kept(kept(folder, after), after)]
    assert texts[0] == "The kiln in the cellar fires at 1240 degrees."
    assert texts[-2:] == ["You forgot what I told you about the kiln.", "All right, noted."]


def test_its_state_may_be_changed_from_outside(tmp_path: Path) -> None:
    folder = Path(copytree(WRITTEN / "sessions", tmp_path / "sessions"))
    graph = open_graph(folder, checkpointer=old_checkpoint(), window=1_000)
    session = get_session(graph, thread()).model_copy(update={"active": {}})
    graph.update_state(thread(), dump(session), as_node="finalize")
    assert graph.get_state(thread()).next == ()
    assert not get_session(graph, thread()).active
