"""The fuzz of the door: whatever message comes, it is kept or refused, and the session answers.

`TOPICLOOM_TEST_MESSAGES=100000` draws as many as were once tried.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from datetime import date
from decimal import Decimal
from operator import methodcaller
from pathlib import Path
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
from sessions import open_graph, tell, thread

from topicloom import InputError, check_session
from topicloom.context.layout import Layout
from topicloom.context.token_count import EstimatingCounter
from topicloom.hosting import make_storable, to_row
from topicloom.state.stored_message import to_stored_message
from topicloom.storage.chain import dump_body, load_body

SERDE = JsonPlusSerializer()
EACH_SAID = 200
"""One of so many is said to a session."""


def nest(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


DRAWN = int(os.environ.get("TOPICLOOM_TEST_MESSAGES", "2000"))
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
        return ChatMessage(
            content=content, role=rng.choice(("user", "assistant", "system", "x")), **more
        )
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
        return rng.choice((AIMessage, AIMessageChunk))(content=content, **more)
    return (AIMessage if kind == 4 else HumanMessage)(content, **more)


def try_draw(rng: random.Random) -> BaseMessage | None:
    """A message that LangChain lets be made; it refuses some by itself."""
    try:
        return draw_message(rng)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


NO_ARTIFACT = methodcaller("model_dump", exclude={"artifact"})
LAYOUT = Layout(EstimatingCounter("o200k"), cap=400)


def lay_out(said: list[BaseMessage]) -> None:
    """The prompt of a session that holds these messages, as an old and as a running turn."""
    stored = [to_stored_message(m, seq=n, time="") for n, m in enumerate(said, start=1)]
    for view, loop in ((stored, []), (stored[:1], said[1:])):
        prompt = LAYOUT.build_prompt("", view, [], lambda n: stored[n - 1], "en", loop, room=2_000)
        assert prompt.said
        assert not isinstance(prompt.said[0], AIMessage | ToolMessage)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:left out of the prompt")
def test_drawn_messages_are_kept_or_refused_in_our_own_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, said, counts = open_graph(tmp_path), list[BaseMessage](), Counter[str]()
    for seed in range(DRAWN):
        if (message := try_draw(random.Random(seed))) is None:
            counts["LangChain refuses it"] += 1
            continue
        try:
            made = make_storable(message)
        except InputError:
            counts["refused"] += 1
            continue
        counts["kept"] += 1
        again = SERDE.loads_typed(SERDE.dumps_typed(made))
        # Where a piece of a stream is read, its calls are made anew from their pieces, and what
        # a tool made is never sent or kept by us.
        if not isinstance(made, AIMessageChunk):
            assert NO_ARTIFACT(again) == NO_ARTIFACT(made)
        load_body(dump_body(to_row(to_stored_message(made, seq=1, time=""))))
        said.append(made)
        if len(said) == 5:
            lay_out([HumanMessage("Hello"), *said, HumanMessage("And?")])
            said.clear()
        if seed % EACH_SAID == 0:
            try:
                graph.invoke({"messages": [try_draw(random.Random(seed))]}, thread())
                counts["said"] += 1
            except InputError:
                counts["empty"] += 1
            tell(graph, thread(), "And now?")
    tell(graph, thread(), "And then?", keep=0)
    assert check_session(graph, thread()) == []
    assert counts["kept"] > DRAWN / 3
    assert counts["refused"] > DRAWN / 100
    with capsys.disabled():
        print(f"\n{DRAWN} messages drawn: {dict(counts)}")  # noqa: T201
