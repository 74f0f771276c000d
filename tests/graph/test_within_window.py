"""No prompt of the main window is larger than the window, whatever messages are made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import ScriptedModel, call, open_agent, remember
from examples import few, fresh
from hypothesis import given, strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from sessions import last_receipt, open_graph, tell, thread

from topicloom.context.token_count import EstimatingCounter
from topicloom.context.tokens import CachedTokenCounter
from topicloom.testing import ScriptedResponder, fake_roles, make_tool_call

CONFIG = thread()
COUNTER = CachedTokenCounter(EstimatingCounter("o200k"))
THOUGHT = {"type": "thinking", "thinking": "thought " * 4_500, "signature": "s"}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "s1",
    "content": [{"url": "u", "encrypted_content": "Ab3" * 8_000}],
}
DONE = {"type": "text", "text": "Done."}


def write_file(path: str, content: str) -> str:
    """Writes a file."""
    return f"{path} has {len(content)} characters"


def size(messages: Sequence[BaseMessage]) -> int:
    """Tokens of a prompt as it is sent."""
    return sum(map(COUNTER.message, messages))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:left out of the prompt")
@pytest.mark.parametrize(
    ("script", "loop"),
    [
        ([make_tool_call("write_file", {"path": "a", "content": "word " * 5_000}), "Done."], 1),
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


@pytest.mark.slow
def test_so_it_is_in_an_agent(tmp_path: Path) -> None:
    long = call("write_file", 1, path="a", content="word " * 4_000)
    model = ScriptedModel(script=[long, "Done."])
    agent = open_agent(model, remember(tmp_path), tools=[write_file])
    for number in range(6):
        agent.invoke({"messages": [("user", f"t: {number} {'talk ' * 10}")]}, CONFIG)
    sizes = [size(prompt) for prompt in model.prompts]
    assert max(sizes[:1] + sizes[2:]) < 1_000


def read_file(path: str) -> str:
    """Reads a file."""
    return f"{path} " + "word " * 5_000


def read_files(count: int, step: int = 0) -> list[AIMessageChunk]:
    """A reply that calls for files at once."""
    names = [f"{step}-{n}" for n in range(count)]
    chunks = [
        {"name": "read_file", "args": f'{{"path": "{name}"}}', "id": name, "index": n}
        for n, name in enumerate(names)
    ]
    return [AIMessageChunk(content="", tool_call_chunks=chunks)]


@pytest.mark.slow
@pytest.mark.parametrize("beginning", [None, "segments"])
@pytest.mark.parametrize(
    "script",
    [[read_files(10), "Done."], [*(read_files(1, n) for n in range(14)), "Done."]],
    ids=["at once", "one by one"],
)
def test_what_tools_say_in_one_turn_is_in_part_together(
    tmp_path: Path, script: list[Any], beginning: str | None
) -> None:
    responder = ScriptedResponder(*script)
    options: dict[str, Any] = {"beginning": beginning} if beginning else {}
    graph = open_graph(tmp_path, fake_roles(responder), tools=[read_file], window=4_000, **options)
    tell(graph, CONFIG, "t: read them")
    sections = last_receipt(tmp_path, graph, CONFIG).sections
    assert sum(sections.values()) == pytest.approx(size(responder.requests[-1].messages), abs=10)
    tell(graph, CONFIG, "t: and now?")
    assert max(size(r.messages) for r in responder.requests) < 4_000
    assert len(responder.requests) == len(script) + 1


@pytest.mark.slow
def test_so_it_is_in_an_agent_of_many_calls(tmp_path: Path) -> None:
    model = ScriptedModel(script=[*(call("read_file", n, path=f"{n}") for n in range(20)), "Done."])
    agent = open_agent(model, remember(tmp_path), tools=[read_file])
    agent.invoke({"messages": [("user", "t: read")]}, {**CONFIG, "recursion_limit": 200})
    assert max(map(size, model.prompts)) < 1_000
    assert len(model.prompts) == 21


values = st.sampled_from(["a", "word " * 5_000, ["长" * 3_000, 1, {"b": "x" * 5_000}]])
turns = st.lists(
    st.tuples(
        st.sampled_from(["t: hi", "t: " + "long " * 4_500]),
        st.lists(st.tuples(st.integers(1, 4), values), max_size=4),
        st.sampled_from(["Done.", [AIMessageChunk(content=[FOUND, THOUGHT, DONE])]]),
    ),
    min_size=3,
    max_size=6,
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:left out of the prompt")
@few(8)
@given(turns)
def test_whatever_is_said(
    tmp_path: Path, drawn: list[tuple[str, list[tuple[int, Any]], Any]]
) -> None:
    """Only the newest call may be too large: it is sent as it was made."""
    responder = ScriptedResponder()
    graph = open_graph(fresh(tmp_path), fake_roles(responder), tools=[put], window=4_000)
    for number, (question, calls, reply) in enumerate(drawn):
        for step, (count, value) in enumerate(calls):
            args = json.dumps({"value": value})
            chunks = [
                {"name": "put", "args": args, "id": f"{number}-{step}-{n}", "index": n}
                for n in range(count)
            ]
            responder.script.append([AIMessageChunk(content="", tool_call_chunks=chunks)])
        responder.script.append(reply)
        tell(graph, CONFIG, question)
    for request in responder.requests:
        running = isinstance(request.messages[-1], ToolMessage)
        newest = [m for m in request.messages if isinstance(m, AIMessage)][-1:]
        whole = size(newest) if running else 0
        assert size(request.messages) < 4_000 or size(request.messages) - whole < 2_000


def put(value: object) -> str:
    """Puts something somewhere."""
    return f"{value} " * 2
