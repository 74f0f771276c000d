"""Records: every kind of message comes back as it was said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.tool import ToolCall
from tables import each_row

from topicloom.state.stored_message import (
    StoredMessage,
    get_message_type,
    get_text,
    to_stored_message,
)

TIME = "2026-03-02T09:00:00+08:00"
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
CALL = ToolCall(name="weather", args={"city": "北京", "days": [1, 2]}, id="c1", type="tool_call")

MESSAGES: list[BaseMessage] = [
    HumanMessage("Hello", id="a"),
    HumanMessage("", id="a"),
    HumanMessage("Hi\r\n\tthere \u2028 \x00 👩‍👩‍👧 é", id="a", name="Ann"),
    HumanMessage("half of a pair: \ud800", id="a"),
    HumanMessage("the other half: \udc00 \udfff\ud800", id="a"),
    HumanMessage("no id"),
    HumanMessage([{"type": "text", "text": "What is this?"}, IMAGE], id="a"),
    HumanMessage([IMAGE], id="a", name="Ann"),
    HumanMessage(["plain part", {"type": "text", "text": "and a block"}], id="a"),
    HumanMessage([{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}]),
    HumanMessage([{"type": "file", "file_id": "f1", "extra": {"page": 3, "none": None}}]),
    HumanMessage([], id="a"),
    HumanMessage("marked", id="a", additional_kwargs={"channel": "web", "deep": {"n": [1.5]}}),
    AIMessage("Hello", id="b"),
    AIMessage("Hello", id="b", name="helper"),
    AIMessage("", id="b", tool_calls=[CALL]),
    AIMessage("Let me look.", id="b", tool_calls=[CALL, {**CALL, "id": "c2", "args": {}}]),
    AIMessage(
        "",
        id="b",
        invalid_tool_calls=[
            {
                "name": "weather",
                "args": "{city:",
                "id": "c3",
                "error": None,
                "type": "invalid_tool_call",
            }
        ],
    ),
    AIMessage(
        [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "Yes."},
            {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "北京"}},
        ],
        id="b",
        tool_calls=[CALL],
    ),
    AIMessage("I would rather not.", additional_kwargs={"reasoning_content": "because"}),
    ToolMessage("21 °C", tool_call_id="c1", id="d"),
    ToolMessage("", tool_call_id="c1", name="weather"),
    ToolMessage("no such city", tool_call_id="c1", status="error", name="weather", id="d"),
    ToolMessage([{"type": "text", "text": "a chart"}, IMAGE], tool_call_id="c1", id="d"),
    ToolMessage("rows", tool_call_id="c1", artifact={"rows": [[1, None], [2, "x"]]}, id="d"),
    AIMessage("", id="b", additional_kwargs={"refusal": "I cannot help with that."}),
    SystemMessage("Answer briefly.", id="e"),
    SystemMessage([{"type": "text", "text": "Answer briefly."}], name="host"),
    ChatMessage(content="Hello", role="critic", id="f"),
    FunctionMessage(content="21", name="weather", id="g"),
]


def through_json(kept: StoredMessage) -> StoredMessage:
    """The record as it comes back from a line of JSON."""
    line = json.dumps(kept.model_dump(mode="json", exclude_defaults=True))
    return StoredMessage.model_validate(json.loads(line))


def said(message: AnyMessage | BaseMessage) -> dict[str, Any]:
    """Everything that was said, and by whom; not what it cost."""
    fields = {"content", "type", "name", "id", "tool_calls", "invalid_tool_calls"}
    fields |= {"tool_call_id", "status", "artifact"}
    return {k: v for k, v in message.model_dump().items() if k in fields}


@each_row("message", MESSAGES)
def test_every_kind_of_message_comes_back(message: BaseMessage) -> None:
    kept = to_stored_message(message, seq=7, time=TIME)
    assert through_json(kept) == kept
    back = through_json(kept).message
    assert type(back) is type(message)
    assert said(back) == said(message)
    assert back.additional_kwargs == message.additional_kwargs


@given(text=st.text(st.characters(exclude_categories=())), name=st.none() | st.text(min_size=1))
def test_any_text_comes_back(text: str, name: str | None) -> None:
    for message in (HumanMessage(text, name=name), AIMessage(text, name=name, id="x")):
        kept = to_stored_message(message, seq=1, time=TIME)
        assert kept.text == text
        assert said(through_json(kept).message) == said(message)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(args=st.dictionaries(st.text(max_size=5), json_values, max_size=3), text=st.text(max_size=9))
def test_any_tool_call_comes_back(args: dict[str, Any], text: str) -> None:
    message = AIMessage(text, tool_calls=[ToolCall(name="f", args=args, id="1", type="tool_call")])
    assert said(through_json(to_stored_message(message, seq=1, time=TIME)).message) == said(message)


@pytest.mark.slow
@given(blocks=st.lists(st.dictionaries(st.text(max_size=5), json_values, max_size=3), max_size=3))
def test_any_content_block_comes_back(blocks: list[dict[str, Any]]) -> None:
    message = HumanMessage(list(blocks))
    assert said(through_json(to_stored_message(message, seq=1, time=TIME)).message) == said(message)


@each_row("artifact", [b"\xff\xfe\x00", object(), {1, 2}, {"png": b"\x89PNG"}])
def test_an_artifact_that_is_not_json_does_not_stop_the_message(artifact: object) -> None:
    message = ToolMessage("a chart", tool_call_id="c1", artifact=artifact)
    back = through_json(to_stored_message(message, seq=1, time=TIME)).message
    assert back.content == "a chart"
    assert isinstance(back, ToolMessage)
    assert back.tool_call_id == "c1"


def test_what_a_reply_cost_is_not_part_of_what_was_said() -> None:
    message = AIMessage(
        "Yes.",
        response_metadata={"model_name": "m"},
        usage_metadata={"input_tokens": 3, "output_tokens": 1, "total_tokens": 4},
    )
    kept = to_stored_message(message, seq=1, time=TIME)
    assert kept.whole is None
    assert said(kept.message) == said(message)


def test_plain_messages_are_kept_plainly() -> None:
    kept = to_stored_message(HumanMessage("Hello", name="Ann", id="a"), seq=42, time=TIME)
    assert kept == StoredMessage(
        seq=42, role="user", text="Hello", time=TIME, speaker="Ann", source="a"
    )
    assert (kept.id, kept.day, kept.label) == ("m42", "2026-03-02", "Ann")
    assert to_stored_message(AIMessage("Hi"), seq=1, time=TIME).label == "assistant"


def test_a_message_may_bring_its_own_time() -> None:
    own = HumanMessage("Then", additional_kwargs={"time": "2023-05-01T10:00:00+00:00"})
    assert to_stored_message(own, seq=1, time=TIME).day == "2023-05-01"
    for none in ({"time": ""}, {"time": None}, {"time": 12}, {}):
        assert (
            to_stored_message(HumanMessage("Then", additional_kwargs=none), seq=1, time=TIME).time
            == TIME
        )


def test_every_kind_of_message_has_a_role() -> None:
    kinds: list[BaseMessage] = [
        HumanMessage("x"),
        AIMessage("x"),
        ToolMessage("x", tool_call_id="c"),
        SystemMessage("x"),
        HumanMessageChunk(content="x"),
        AIMessageChunk(content="x"),
        FunctionMessage(content="x", name="f"),
        ChatMessage(content="x", role="critic"),
        ChatMessage(content="x", role="assistant"),
    ]
    roles = [to_stored_message(m, seq=1, time=TIME).role for m in kinds]
    assert roles[:4] == ["user", "assistant", "tool", "system"]
    assert roles[4:] == ["user", "assistant", "tool", "user", "assistant"]
    assert [get_message_type(m) for m in kinds[4:6]] == ["human", "ai"]


def test_text_of_blocks() -> None:
    blocks: list[str | dict[str, Any]] = [
        "one",
        {"type": "text", "text": "two"},
        IMAGE,
        {"text": ""},
    ]
    assert get_text(HumanMessage(blocks)) == "one\ntwo"
    assert get_text(HumanMessage([IMAGE])) == ""


def test_a_refusal_is_what_is_said() -> None:
    """As the Responses API sends it; it was stored as an empty line."""
    refusal = {"type": "refusal", "refusal": "I cannot help.", "id": "msg_1"}
    message = AIMessage([{"type": "reasoning", "summary": []}, refusal], id="b")
    assert get_text(message) == "I cannot help."
    stored = to_stored_message(message, seq=1, time=TIME)
    assert stored.line == "assistant: I cannot help."
    assert stored.message.content == message.content


def test_a_changed_copy_forgets_what_was_made_of_the_old_fields() -> None:
    """The placeholder of a removed message gave the removed words in `message`."""
    stored = to_stored_message(HumanMessage("the secret", id="a"), seq=1, time=TIME)
    assert (stored.id, stored.message.content) == ("m1", "the secret")
    changed = stored.model_copy(update={"text": "(removed)", "seq": 2})
    assert (changed.id, changed.message.content) == ("m2", "(removed)")
    assert stored.message.content == "the secret"
