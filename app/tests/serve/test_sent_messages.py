"""A client sends its history again, without ids: what says the same is the same message."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from topicloom.hosting import REMOVED
from topicloom_app.serve.sent_messages import (
    are_sent_again,
    digest_histories,
    is_part,
    is_sent_again,
    list_sent,
)

HELLO = HumanMessage("Hello", id="u1")
REPLY = AIMessage("Good day", id="a1")
OTHER = HumanMessage("Something else", id="u1")
CALL = {"name": "look", "args": {"at": "it"}, "id": "c1"}
CALLS = AIMessage("", tool_calls=[CALL], id="a2")
SEEN = ToolMessage("seen", tool_call_id="c1", id="t1")
BLOCKS = HumanMessage([{"type": "text", "text": "Hello"}], id="u1")
NO_ID = HumanMessage("Hello")


@pytest.mark.parametrize(
    ("said", "again"),
    [
        pytest.param(NO_ID, True, id="without the id"),
        pytest.param(HumanMessage(" Hel lo\n", id="x"), True, id="with other spaces"),
        pytest.param(BLOCKS, True, id="as content blocks"),
        pytest.param(OTHER, False, id="other words"),
        pytest.param(AIMessage("Hello"), False, id="another role"),
    ],
)
def test_a_message_that_a_client_sends_again(said: AnyMessage, again: bool) -> None:
    assert is_sent_again(HELLO, said) == again
    assert (digest_histories([HELLO])[-1] == digest_histories([said])[-1]) == again
    assert is_sent_again(HumanMessage(REMOVED, id="u1"), said), (
        "a client may not know that it was purged"
    )


def test_a_history_that_a_client_sends_again() -> None:
    thinking = AIMessage("<think>Who?</think>Good day", id="a1")
    shown: list[AnyMessage] = [
        HELLO,
        AIMessage("Let me see. ", tool_calls=[CALL], id="a0"),
        SEEN,
        thinking,
    ]
    sent = list(list_sent(shown))
    assert are_sent_again(sent, [NO_ID, AIMessage("Good day")])
    assert are_sent_again(sent, [NO_ID, AIMessage("Let me see. Good day")]), (
        "with what was streamed"
    )
    assert not are_sent_again(sent, [NO_ID, AIMessage("Good night")])
    assert not are_sent_again(sent, [NO_ID])
    whole, other = digest_histories([HELLO, REPLY]), digest_histories([OTHER, REPLY])
    assert whole[0] == other[0] == ""
    assert whole[2] != other[2], "all that came before counts"
    assert digest_histories([REPLY], whole[1])[-1] == whole[2]


def test_a_part_of_a_reply_is_no_message_of_its_own() -> None:
    both = AIMessage("Let me see.", tool_calls=[CALL], id="a2")
    assert is_part(AIMessage("Let me see."), both)
    assert is_part(CALLS, both)
    assert not is_part(AIMessage("Something else"), both)
    assert not is_part(HELLO, both)
