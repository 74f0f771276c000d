"""Two writers change one document at once: the edits of both are in it, and in the journal."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from domains import CONFIG, SWORD, count_of, editing, open_domain, the_document
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from sessions import kept

from topicloom import get_session
from topicloom.testing import ScriptedResponder, fake_roles


@pytest.mark.slow
def test_each_takes_over_what_the_other_did(tmp_path: Path) -> None:
    saver = InMemorySaver()
    responder = ScriptedResponder(otherwise="Done.")
    graph = open_domain(tmp_path, fake_roles(responder), checkpointer=saver)
    said: dict[str, Any] = {"messages": [HumanMessage("Hello")], "document": the_document()}
    graph.invoke(said, CONFIG)
    behind = copy.copy(saver)
    behind.storage, behind.writes, behind.blobs = copy.deepcopy(
        (saver.storage, saver.writes, saver.blobs)
    )
    other = open_domain(tmp_path, fake_roles(responder), checkpointer=behind)
    responder.script = [editing(("INC", SWORD, 2), text="Two more."), "Done."]
    assert count_of(graph.invoke({"messages": [HumanMessage("Two more swords")]}, CONFIG)) == 3
    responder.script = [editing(("INC", SWORD, 4), text="Four more."), "Done."]
    assert count_of(other.invoke({"messages": [HumanMessage("Four more swords")]}, CONFIG)) == 7
    session = get_session(other, CONFIG)
    edits = [entry.edits[0][2] for entry in kept(tmp_path, session).journal(session)]
    assert edits == [2, 4]
