"""Which messages of an export a session holds already."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from topicloom import StoredMessage
from topicloom.hosting import REMOVED
from topicloom.state.stored_message import to_stored_message
from topicloom_app.recordings.imported_ids import ImportedIds

HELLO = HumanMessage("Hello", id="u1")
REPLY = AIMessage("Good day", id="a1")
OTHER = HumanMessage("Something else", id="u1")
MORE = HumanMessage("More", id="u2")


def stored(*messages: AnyMessage) -> list[StoredMessage]:
    return [to_stored_message(m, seq=n, time="2026-03-02") for n, m in enumerate(messages, 1)]


def purged(message: AnyMessage) -> StoredMessage:
    return stored(message)[0].model_copy(update={"text": REMOVED, "whole": None})


@pytest.mark.parametrize(
    ("message", "named"),
    [
        pytest.param(MORE, "u2", id="an unknown id"),
        pytest.param(HELLO, "u1", id="held already"),
        pytest.param(OTHER, "u1-", id="an id that stands for other words"),
        pytest.param(HumanMessage("Secret", id="g1"), None, id="purged"),
        pytest.param(HumanMessage("Public", id="g1"), "g1-", id="the id of what was purged"),
    ],
)
def test_an_import(message: AnyMessage, named: str | None) -> None:
    held = ImportedIds()
    gone = purged(HumanMessage("Secret", id="g1"))
    for one in (*stored(HELLO, REPLY), gone):
        held.hold(one, lambda m: m.content == "Secret")
    found = held.name(message)
    if named is None:
        assert found is None
        return
    assert found is not None
    assert str(found.id).startswith(named)
    assert (found.id == message.id) == (not named.endswith("-"))
    assert held.take(found, "chat") == (message is not HELLO), "what is held is not taken again"
    assert not held.take(found, "chat")
