"""JavaScript cuts texts within a character: what is left of it is marked, and never an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from sessions import open_graph

from topicloom.testing import ScriptedResponder, fake_roles
from topicloom_app import make_endpoint

HALF, MARKED = "cut \ud83d", "cut \ufffd"
SAID: Any = [{"role": "user", "content": HALF}]
BLOCKS: Any = [{"role": "user", "content": [{"type": "text", "text": HALF}]}]
CALL: Any = {"name": "f", "arguments": json.dumps({"a": HALF})}
CALLED: Any = [
    {"role": "user", "content": "x"},
    {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": CALL}]},
    {"role": "tool", "tool_call_id": "c", "content": HALF},
]
TOOL: Any = {"type": "function", "name": "f", "description": HALF, "parameters": {"type": "object"}}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "message": ("chat/completions", {"messages": SAID}),
    "user": ("chat/completions", {"messages": SAID, "user": HALF}),
    "model": ("chat/completions", {"messages": SAID, "model": HALF}),
    "role": ("chat/completions", {"messages": [{"role": HALF, "content": "x"}]}),
    "tool": ("chat/completions", {"messages": CALLED}),
    "response": ("responses", {"input": HALF, "user": HALF, "metadata": {HALF: HALF}}),
    "instructions": ("responses", {"input": "x", "instructions": HALF, "tools": [TOOL]}),
    "blocks": ("messages", {"max_tokens": 9, "system": HALF, "messages": BLOCKS}),
    "previous": ("responses", {"input": "x", "previous_response_id": HALF}),
}


async def post(
    folder: Path, path: str, body: dict[str, Any], reply: str = "Noted."
) -> httpx.Response:
    graph = open_graph(folder, fake_roles(ScriptedResponder(otherwise=reply)))
    transport = httpx.ASGITransport(make_endpoint(graph), raise_app_exceptions=True)
    sent = json.dumps({"model": "topicloom"} | body)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321") as client:
        kind = {"content-type": "application/json"}
        return await client.post(f"/v1/{path}", content=sent, headers=kind)


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("stream", [False, True])
async def test_half_a_character_anywhere_in_a_request(
    tmp_path: Path, name: str, stream: bool
) -> None:
    path, body = REQUESTS[name]
    answer = await post(tmp_path, path, body | {"stream": stream})
    assert answer.status_code < 500
    assert "\\ud83d" not in answer.text


async def test_what_an_answer_repeats_is_marked(tmp_path: Path) -> None:
    answer = await post(
        tmp_path, "responses", {"input": "x", "metadata": {"k": HALF}, "instructions": HALF}
    )
    assert answer.json()["metadata"] == {"k": MARKED}
    assert answer.json()["instructions"] == MARKED


@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
async def test_a_model_that_cuts_a_character(tmp_path: Path, path: str) -> None:
    """The stream goes on to its end."""
    said: Any = {"input": "x"} if path == "responses" else {"messages": SAID, "max_tokens": 9}
    answer = await post(tmp_path, path, said | {"stream": True}, f"{HALF} here")
    assert "\ufffd" in answer.text
    assert "here" in answer.text
