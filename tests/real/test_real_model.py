"""The session graph with a real model behind a real server: wiring, not sense.

A model of 135M parameters answers nonsense, which is what most of this is about. Run by
`pytest -m real_model`; see `tests/support/llama_server.py` for what it downloads.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from llama_server import LlamaServer, Unavailable, llama_server
from platformdirs import user_cache_path

from topicloom import (
    FileStorage,
    ReadRequest,
    Receipt,
    ReplyError,
    SessionStore,
    Settings,
    StoredMessage,
    Topic,
    TopicWindow,
    TurnOptions,
    build_session_graph,
    get_session,
)
from topicloom.context.prefix import PrefixMeter
from topicloom.effects import arun_step
from topicloom.hosting import Graph
from topicloom.roles.calls import ask_role
from topicloom.roles.chat import Chat
from topicloom.roles.models import open_model
from topicloom.roles.reader import ChatReader

pytestmark = pytest.mark.real_model

CONFIG: RunnableConfig = {"configurable": {"thread_id": "real"}}
CONTEXT, ANSWER, WINDOW = 2_560, 24, 2_400
"""Tokens of the server's context, of an answer that sets no limit of its own, and of windows."""


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    """The server; the tests are skipped where it cannot be had."""
    named = os.environ.get("TOPICLOOM_TEST_CACHE")
    cache = Path(named) if named else user_cache_path("topicloom-tests")
    try:
        with llama_server(cache, context=CONTEXT, answer=ANSWER) as running:
            yield running
    except Unavailable as error:
        pytest.skip(f"NO REAL MODEL WAS TESTED: {error}")


def session_graph(server: LlamaServer, folder: Path, **settings: Any) -> Graph:
    options: dict[str, Any] = {"window": 1_800, "topic_window": WINDOW, "fsync": False, **settings}
    return build_session_graph(
        model="openai:smollm2",
        settings=Settings.model_validate(
            {"folder": folder, "base_url": server.base_url, "max_retries": 0, **options}
        ),
    ).compile(checkpointer=InMemorySaver())


def say(graph: Graph, text: str, **options: Any) -> tuple[list[AIMessageChunk], Receipt]:
    """The chunks that are streamed to the user, and the receipt of the turn."""
    chunks, receipts = [], []
    events: Iterator[Any] = graph.stream(
        {"messages": [HumanMessage(text)]},
        CONFIG,
        context=TurnOptions(**options),
        stream_mode=["messages", "custom"],
    )
    for mode, event in events:
        if mode == "messages" and isinstance(event[0], AIMessageChunk):
            chunks.append(event[0])
        if mode == "custom" and event["type"] == "receipt":
            receipts.append(Receipt.model_validate(event["receipt"]))
    return chunks, receipts[-1]


def said(graph: Graph, folder: Path) -> list[str]:
    """The texts of all messages that the session keeps."""
    session = get_session(graph, CONFIG)
    return [m.text for m in SessionStore(FileStorage(folder).open("real")).messages(session)]


def test_a_reply_streams_is_counted_and_the_next_one_is_cached(
    server: LlamaServer, tmp_path: Path
) -> None:
    graph = session_graph(server, tmp_path)
    chunks, first = say(graph, "Hello! My name is Ada, and I like maps.")
    assert sum(bool(chunk.content) for chunk in chunks) > 2
    (call,) = first.calls
    assert (call.role, call.model, call.failure) == ("responder", "smollm2", None)
    assert 0 < call.output_tokens <= ANSWER
    _, second = say(graph, "What did I say that I like?")
    (again,) = second.calls
    assert call.input_tokens < again.input_tokens
    assert 0 < again.cached_tokens < again.input_tokens


def test_inner_roles_that_answer_rubbish_cost_nothing_but_themselves(
    server: LlamaServer, tmp_path: Path
) -> None:
    graph = session_graph(server, tmp_path, role_seconds=12)
    talk = [f"Note {n}: the {what} is {n} metres long." for n, what in enumerate(("boat", "car"))]
    for text in talk:
        graph.invoke({"messages": [HumanMessage(text)]}, CONFIG, context=TurnOptions(answer=False))
    # Everything moves into topics before the answer: all inner roles are asked.
    chunks, receipt = say(graph, "How long is the boat?", keep_messages=0)
    assert any(chunk.content for chunk in chunks)
    assert said(graph, tmp_path)[:3] == [*talk, "How long is the boat?"]
    failed = {call.role for call in receipt.failures}
    assert failed
    for role in failed:
        answered = [c for c in receipt.calls if c.role == role and c.failure is None]
        assert answered, f"nobody stood in for the {role}"
    assert "0 metres" in str(receipt.quoted) or "m1" in str(receipt.quoted)


def test_a_prompt_that_is_too_long_for_the_server_loses_nothing(
    server: LlamaServer, tmp_path: Path
) -> None:
    graph = session_graph(server, tmp_path, window=32_000)
    text = "The harbour of the old town lies in the fog. " * (CONTEXT // 8)
    # Refused, or cut before it is sent where the server's context is known.
    with suppress(ReplyError):
        say(graph, text)
    assert text in said(graph, tmp_path)


async def test_no_request_is_left_behind_after_a_deadline(server: LlamaServer) -> None:
    server.wait_until_idle()
    before = server.written()
    # An answer that would take far longer than the server takes to see that nobody waits.
    endless = {"max_tokens": CONTEXT // 2, "extra_body": {"ignore_eos": True}}
    model = open_model("openai:smollm2", base_url=server.base_url, max_retries=0)
    chat = Chat.of(model.model_copy(update=endless), PrefixMeter(), window=WINDOW, deadline=0.5)
    messages = [StoredMessage(seq=1, role="user", text="The boat is long.", time="")]
    shown = TopicWindow(Topic(id="t1", name="Boat"), messages)
    request = ReadRequest("real", [shown], messages, "Long?", "en")
    _, call = await arun_step(ask_role("reader", ChatReader(chat), request))
    assert call.failure == "no answer within 0.5 s"
    # In a thread: the connection is closed by the event loop.
    await asyncio.to_thread(server.wait_until_idle)
    assert server.written() < before + CONTEXT // 2
