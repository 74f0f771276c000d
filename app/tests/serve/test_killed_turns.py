"""A process is killed behind a turn that no checkpoint knows yet; its client sends it again."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from topicloom import Memory, Settings, build_session_graph
from topicloom.hosting import Graph, name_thread
from topicloom.testing import fake_roles
from topicloom_app import make_endpoint

THREAD = name_thread("chat")
Saved = tuple[dict[str, Any], dict[Any, Any], dict[Any, Any]]


def save(saver: InMemorySaver) -> Saved:
    """What a checkpointer knows now."""
    return copy.deepcopy((dict(saver.storage), dict(saver.writes), dict(saver.blobs)))


def open_process(folder: Path, saved: Saved = ({}, {}, {})) -> tuple[Graph, InMemorySaver]:
    """A graph of another process, over the same folder and what a checkpointer knew."""
    saver, (storage, writes, blobs) = InMemorySaver(), copy.deepcopy(saved)
    saver.storage.update(storage)
    saver.writes.update(writes)
    saver.blobs.update(blobs)
    settings = Settings(folder=folder, fsync=False)
    return build_session_graph(settings=settings, roles=fake_roles()).compile(saver), saver


async def send(graph: Graph, shown: list[dict[str, str]], text: str) -> list[dict[str, str]]:
    """What a client shows behind its next turn."""
    asked = [*shown, {"role": "user", "content": text}]
    transport = httpx.ASGITransport(make_endpoint(graph))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.post(
            "/v1/chat/completions",
            json={"model": "topicloom", "messages": asked},
            headers={"X-Topicloom-Session": "chat"},
        )
    return [*asked, answer.json()["choices"][0]["message"]]


@pytest.mark.slow
async def test_a_turn_that_is_sent_again_is_kept_once(tmp_path: Path) -> None:
    graph, saver = open_process(tmp_path)
    shown = await send(graph, [], "The boat is called Heron.")
    saved = save(saver)
    await send(graph, shown, "It is nine metres long.")
    graph, _ = open_process(tmp_path, saved)
    for text in ("It is nine metres long.", "It is blue."):
        shown = await send(graph, shown, text)
    kept = await Memory.of(graph, THREAD).ahistory(limit=None)
    assert [(m.role, m.text) for m in kept] == [(m["role"], m["content"]) for m in shown]


async def test_what_somebody_else_said_meanwhile_stays(tmp_path: Path) -> None:
    graph, saver = open_process(tmp_path)
    shown = await send(graph, [], "The boat is called Heron.")
    saved = save(saver)
    await graph.ainvoke({"messages": [HumanMessage("It was built in 1986.")]}, THREAD)
    graph, _ = open_process(tmp_path, saved)
    await send(graph, shown, "It is nine metres long.")
    texts = [m.text for m in await Memory.of(graph, THREAD).ahistory(limit=None)]
    assert {"It was built in 1986.", "It is nine metres long."} < set(texts)
