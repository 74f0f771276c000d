"""No prompt of the main window is larger than the window, whatever messages are made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import ScriptedModel, call, open_agent, remember
from langchain_core.messages import AIMessageChunk, BaseMessage
from sessions import last_receipt, open_graph, tell, thread

from topicloom.context.token_count import EstimatingCounter
from topicloom.testing import ScriptedResponder, fake_roles, make_tool_call

CONFIG = thread()
COUNTER = EstimatingCounter("o200k")
THOUGHT = {"type": "thinking", "thinking": "thought " * 6_000, "signature": "s"}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "s1",
    "content": [{"url": "u", "encrypted_content": "Ab3" * 20_000}],
}
DONE = {"type": "text", "text": "Done."}


def write_file(path: str, content: str) -> str:
    """Writes a file."""
    return f"{path} has {len(content)} characters"


def size(messages: Sequence[BaseMessage]) -> int:
    """Tokens of a prompt as it is sent."""
    return sum(map(COUNTER.message, messages))


@pytest.mark.parametrize(
    ("script", "loop"),
    [
        ([make_tool_call("write_file", {"path": "a", "content": "word " * 12_000}), "Done."], 1),
        ([[AIMessageChunk(content=[FOUND, DONE])]], 0),
        ([[AIMessageChunk(content=[THOUGHT, DONE])]] * 3, 0),
    ],
    ids=["arguments", "blocks", "thoughts"],
)
def test_what_is_no_text_is_in_part_once_it_is_said(
    tmp_path: Path, script: list[Any], loop: int
) -> None:
    """But for the call that the running turn makes, which providers take back as it is."""
    responder = ScriptedResponder(*script)
    graph = open_graph(tmp_path, fake_roles(responder), tools=[write_file], window=4_000)
    for number in range(6):
        tell(graph, CONFIG, f"t: next {number} {'talk ' * 30}")
        sent = responder.requests[-1].messages
        sections = last_receipt(tmp_path, graph, CONFIG).sections
        assert sum(sections.values()) == pytest.approx(size(sent), abs=10)
    sizes = [size(r.messages) for r in responder.requests]
    assert max(sizes[:loop] + sizes[loop + 1 :]) < 4_000


def test_so_it_is_in_an_agent(tmp_path: Path) -> None:
    long = call("write_file", 1, path="a", content="word " * 4_000)
    model = ScriptedModel(script=[long, "Done."])
    agent = open_agent(model, remember(tmp_path), tools=[write_file])
    for number in range(6):
        agent.invoke({"messages": [("user", f"t: {number} {'talk ' * 10}")]}, CONFIG)
    sizes = [size(prompt) for prompt in model.prompts]
    assert max(sizes[:1] + sizes[2:]) < 1_000
