"""The door: what can be kept in another form is, and all else is refused in our own words."""

from __future__ import annotations

import json
import os
import random
import threading
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from topicloom.errors import InputError
from topicloom.state.message_form import DEEPEST, make_result_storable, make_storable
from topicloom.state.stored_message import to_stored_message

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
    row = to_stored_message(kept, seq=1, time="").model_dump_json()
    assert json.loads(row)["seq"] == 1
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
    (date(2026, 3, 2), "2026-03-02"),
    (Decimal("1.5"), "1.5"),
]


@pytest.mark.parametrize(("value", "kept"), CHANGED)
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
    (kept,) = make_result_storable([result])
    assert kept.artifact is None
    assert kept.additional_kwargs == {"artifact_left_out": "lock"}
    assert SERDE.loads_typed(SERDE.dumps_typed(kept)) == kept
    fine = ToolMessage("done", tool_call_id="a", artifact={"rows": [1, 2]})
    assert make_result_storable(fine) is fine


def test_what_is_fine_passes_as_it_is() -> None:
    for message in (
        HumanMessage("hi"),
        AIMessage([{"type": "text", "text": "hi"}]),
        call(n=1, deep=nest(20)),
        HumanMessage("half of a pair: \ud800"),
    ):
        assert make_storable(message) is message


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
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


# The fuzz of the door. `TOPICLOOM_TEST_MESSAGES=100000` draws as many as were once tried.
DRAWN = int(os.environ.get("TOPICLOOM_TEST_MESSAGES", "3000"))
KEYS = (
    *("type", "text", "source", "data", "image_url", "url", "id", "index", "content", "args"),
    *("reasoning", "summary", "signature", "refusal", "file", "source_type", "mime_type"),
    *("extras", "call_id", "name", "", "\ud800", "\0"),
)
TYPES = (
    *("text", "image", "image_url", "media", "document", "file", "tool_use", "tool_call"),
    *("thinking", "reasoning", "refusal", "function_call", "compaction", "search_result", "x", ""),
)


def draw_value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.random()
    if depth < 5 and kind < 0.18:
        return {rng.choice(KEYS): draw_value(rng, depth + 1) for _ in range(rng.randrange(4))}
    if depth < 5 and kind < 0.33:
        return [draw_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind < 0.35:
        return nest(rng.choice((10, 70, 200, 900, 3_000)))
    return rng.choice(
        (
            *(None, True, 0, -1, 2**63, 2**64, -(2**70), 10**30, 1.5, float("nan"), float("-inf")),
            *("", "a", "\ud800", "\0", "data:image/png;base64,QUJD", "[m1] user:", "\n" * 50),
            *(b"abc", (1, 2), {1, 2}, date(2026, 3, 2), Decimal("1.5"), object(), 1j, range(3)),
        )
    )


def draw_block(rng: random.Random) -> Any:
    if rng.random() < 0.15:
        return rng.choice(("", "a", "\ud800"))
    block = {rng.choice(KEYS): draw_value(rng) for _ in range(rng.randrange(4))}
    if rng.random() < 0.9:
        block["type"] = rng.choice(TYPES) if rng.random() < 0.9 else draw_value(rng)
    return block


def draw_message(rng: random.Random) -> BaseMessage:
    content: Any = "a" * rng.randrange(3)
    if rng.random() < 0.8:
        content = [draw_block(rng) for _ in range(rng.randrange(4))]
    more: dict[str, Any] = {"id": rng.choice((None, "", "a", "\ud800", "x" * 999))}
    if rng.random() < 0.3:
        more["additional_kwargs"] = {rng.choice(KEYS): draw_value(rng)}
    if rng.random() < 0.2:
        more["response_metadata"] = {
            "output_version": rng.choice(("v0", "v1")),
            "x": draw_value(rng),
        }
    kind = rng.randrange(6)
    if kind == 0:
        return SystemMessage(content, **more)
    if kind == 1:
        return ChatMessage(content, role=rng.choice(("user", "assistant", "system", "x")), **more)
    if kind == 2:
        artifact = draw_value(rng)
        return ToolMessage(content, tool_call_id="a", artifact=artifact, **more)
    if kind == 3:
        args = {rng.choice(KEYS): draw_value(rng)}
        more["tool_calls"] = [
            {
                "name": rng.choice(("f", "", "a b\n")),
                "args": args,
                "id": rng.choice((None, "", "a")),
            }
        ]
        return rng.choice((AIMessage, AIMessageChunk))(content, **more)
    return (AIMessage if kind == 4 else HumanMessage)(content, **more)


def try_draw(rng: random.Random) -> BaseMessage | None:
    """A message that LangChain lets be made; it refuses some by itself."""
    try:
        return draw_message(rng)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


@pytest.mark.slow
def test_drawn_messages_are_kept_or_refused_in_our_own_words() -> None:
    kept = refused = 0
    for seed in range(DRAWN):
        if (message := try_draw(random.Random(seed))) is None:
            continue
        try:
            made = make_storable(message)
        except InputError:
            refused += 1
            continue
        kept += 1
        SERDE.loads_typed(SERDE.dumps_typed(made))
        to_stored_message(made, seq=1, time="").model_dump_json()
    assert kept > DRAWN / 2
    assert refused > DRAWN / 100
    print(f"{kept} kept, {refused} refused of {DRAWN}")
