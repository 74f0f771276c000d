"""Whatever texts a request has, reading it takes time that grows with their length."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from sieve import find_fast_growth
from tables import each_row

from topicloom_app.serve.anthropic_messages import read_messages_request
from topicloom_app.serve.chat_completions import read_chat
from topicloom_app.serve.responses import read_response_request
from topicloom_app.serve.sent_messages import (
    are_sent_again,
    digest_histories,
    list_sent,
    strip_thoughts,
)
from topicloom_app.serve.side_calls import quotes

ONE = {"model": "topicloom"}


def write(**body: Any) -> bytes:
    return json.dumps(ONE | body).encode()


def read_completions(text: str) -> object:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": text}}
    said: list[Any] = [
        {"role": "system", "content": text},
        {"role": "user", "content": [{"type": "text", "text": text}]},
        {"role": "assistant", "content": text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": text},
        {"role": "user", "content": text},
    ]
    turn, _ = read_chat(write(messages=said, user=text), {})
    given = [m for m in turn.messages if isinstance(m, BaseMessage)]
    digest_histories(given)
    return are_sent_again(list(list_sent(given)), given)


def read_anthropic(text: str) -> object:
    said: list[Any] = [
        {"role": "user", "content": text},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": text, "signature": "s"},
                {"type": "text", "text": text},
                {"type": "tool_use", "id": "c", "name": "f", "input": {"a": text}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c", "content": text}],
        },
    ]
    return read_messages_request(write(system=text, messages=said, max_tokens=9), {})


def read_responses(text: str) -> object:
    said: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": text}]},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": text}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": text},
        {"type": "function_call_output", "call_id": "c", "output": text},
        {"role": "user", "content": text},
    ]
    return read_response_request(write(instructions=text, input=said, user=text), {})


READERS: Mapping[str, Callable[[str], object]] = {
    "chat completions": read_completions,
    "messages": read_anthropic,
    "responses": read_responses,
    "strip_thoughts": strip_thoughts,
    "quotes": lambda t: quotes(t, t[:400], t),
}


@pytest.mark.slow
@each_row("name", READERS)
def test_what_reads_a_request(name: str) -> None:
    assert list(find_fast_growth(READERS[name])) == []
