"""The door: what can be kept in another form is, and all else is refused in our own words."""

from __future__ import annotations

import json
import threading
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tables import each_row

from topicloom.errors import InputError
from topicloom.state.message_form import DEEPEST, make_result_storable, make_storable
from topicloom.state.stored_message import to_stored_message
from topicloom.storage.chain import dump_body, load_body
from topicloom.storage.message_rows import to_row

SERDE = JsonPlusSerializer()


def nest(levels: int, inner: Any = 1) -> Any:
    for _ in range(levels):
        inner = {"a": inner}
    return inner


def keep(message: BaseMessage) -> BaseMessage:
    """Through the door, into a checkpoint and a row of the storage, and out again."""
    kept = make_storable(message)
    read = SERDE.loads_typed(SERDE.dumps_typed(kept))
    assert read == kept
    assert make_storable(kept) is kept
    row = dump_body(to_row(to_stored_message(kept, seq=1, time="")))
    assert load_body(row)["seq"] == 1
    assert isinstance(kept, BaseMessage)
    return kept


def call(**args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "f", "args": args, "id": "a", "type": "tool_call"}])


CHANGED: list[tuple[object, object]] = [
    (10**25, str(10**25)),
    (-(2**63) - 1, str(-(2**63) - 1)),
    (2**64 - 1, 2**64 - 1),
    (b"abc", "YWJj"),
    (float("inf"), "inf"),
    ((1, 2), [1, 2]),
    ({1: "a"}, {"1": "a"}),
    ({"\ud800": "a"}, {"\ufffd": "a"}),
    (date(2026, 3, 2), "2026-03-02"),
    (Decimal("1.5"), "1.5"),
]


@each_row(("value", "kept"), CHANGED)
def test_what_is_kept_in_another_form(value: object, kept: object) -> None:
    said = keep(call(n=value))
    assert isinstance(said, AIMessage)
    assert said.tool_calls[0]["args"] == {"n": kept}
    assert keep(HumanMessage([{"type": "x", "n": value}])).content == [{"type": "x", "n": kept}]
    extra = keep(HumanMessage("a", additional_kwargs={"n": value})).additional_kwargs
    assert extra == {"n": kept}


def test_an_integer_that_python_does_not_write() -> None:
    said = keep(call(n=10**5_000))
    assert isinstance(said, AIMessage)
    assert said.tool_calls[0]["args"]["n"].startswith("0x")


@pytest.mark.parametrize("levels", [300, 150])
def test_what_is_nested_deep_is_kept_as_its_json(levels: int) -> None:
    said = keep(call(**nest(levels)))
    assert isinstance(said, AIMessage)
    value: Any = said.tool_calls[0]["args"]
    for _ in range(DEEPEST - 3):
        value = value["a"]
    while not isinstance(value, str):
        value = value["a"]
    assert json.loads(value) == nest(value.count("{"))


def test_an_artifact_that_no_checkpoint_holds_is_left_out_with_a_note() -> None:
    result = ToolMessage("done", tool_call_id="a", artifact=threading.Lock())
    (kept,) = make_result_storable("f", [result])
    assert kept.artifact is None
    assert kept.additional_kwargs == {"artifact_left_out": "lock"}
    assert SERDE.loads_typed(SERDE.dumps_typed(kept)) == kept
    fine = ToolMessage("done", tool_call_id="a", artifact={"rows": [1, 2]})
    assert make_result_storable("f", fine) is fine


def test_what_is_fine_passes_as_it_is() -> None:
    for message in (
        HumanMessage("hi"),
        AIMessage([{"type": "text", "text": "hi"}]),
        call(n=1, deep=nest(20)),
        HumanMessage("中 😀", id="é", name="中"),
    ):
        assert make_storable(message) is message


def test_half_of_a_character() -> None:
    said = HumanMessage("a\ud800", id="\ud800", name="b\udc00", additional_kwargs={"c": "\ud800"})
    whole = HumanMessage("a\ufffd", id="\ufffd", name="b\ufffd", additional_kwargs={"c": "\ufffd"})
    assert keep(said) == whole
    assert keep(HumanMessage("\ud83d\ude00")).content == "😀"
    assert keep(call(n=["\ud800"])) == call(n=["\ufffd"])
    assert keep(ToolMessage("", tool_call_id="\ud800")) == ToolMessage("", tool_call_id="\ufffd")
    assert keep(AIMessage("", response_metadata={"a": "\ud800"})).response_metadata == {
        "a": "\ufffd"
    }


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.slow
@each_row(
    "message",
    [
        HumanMessage([{"type": ["x"]}]),
        HumanMessage([{"type": "x", "a": endless()}]),
        HumanMessage([{"type": "x", "a": nest(5_000)}]),
        call(a=[0] * 300_000),
        HumanMessage("x" * 100_000_001),
    ],
)
def test_what_is_refused(message: BaseMessage) -> None:
    with pytest.raises(InputError, match=r"give|a type is a text"):
        make_storable(message)
