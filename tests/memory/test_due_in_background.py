"""Reviews and reflections run wherever a session lives, once for each that is due."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from sessions import open_graph, past, record, tell, thread

from topicloom import REFLECTOR, REVIEWER, Answer, ReflectionStore, Settings
from topicloom.hosting import Graph, run_background
from topicloom.reflection.facts import Claim
from topicloom.reflection.reflector import EmbeddedReflector, ReflectRequest
from topicloom.review.decisions import Assessment
from topicloom.review.reviewer import EmbeddedReviewer, ReviewRequest
from topicloom.search.hashing import HashingEmbedder
from topicloom.testing import fake_roles
from topicloom_app.cli.context import make_context

DUE = {"turns": 1, "idle_seconds": 0.01, "tick_seconds": 0.05, "review_seconds": 3_600}


class Reviewing(EmbeddedReviewer):
    """Reviews without a model, and remembers the topics."""

    def __init__(self) -> None:
        super().__init__(HashingEmbedder(256))
        self.names: list[str] = []

    def call(self, request: ReviewRequest) -> Answer[Assessment]:
        self.names.append(request.topic.name)
        return super().call(request)


class Reflecting(EmbeddedReflector):
    """Reflects without a model, and remembers what it read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def call(self, request: ReflectRequest) -> Answer[tuple[Claim, ...]]:
        self.read += [m.text for m in request.messages]
        return super().call(request)


def opened(
    folder: Path,
    reviewer: Reviewing | None = None,
    reflector: Reflecting | None = None,
    **settings: Any,
) -> tuple[Graph, InMemorySaver, InMemoryStore]:
    """A session with topics, in which something is due."""
    saver, store = InMemorySaver(), InMemoryStore()
    roles = fake_roles().replace(REVIEWER, reviewer or Reviewing())
    roles = roles.replace(REFLECTOR, reflector or Reflecting())
    options: dict[str, Any] = {"store": store, "reflection": DUE, **settings}
    graph = open_graph(folder, roles, checkpointer=saver, **options)
    record(graph, thread(), *past("茶", "雨"))
    tell(graph, thread(), "I'm allergic to peanuts.", keep=0)
    return graph, saver, store


async def wait_for_review(store: InMemoryStore) -> None:
    for _ in range(400):
        if ReflectionStore(store).progress("s").reviewed_at:
            return
        await asyncio.sleep(0.05)
    pytest.fail("nobody reviewed it")


@pytest.mark.slow
async def test_what_is_due_is_done_once_by_whoever_comes_first(tmp_path: Path) -> None:
    reviewer, reflector = Reviewing(), Reflecting()
    graph, saver, store = await asyncio.to_thread(opened, tmp_path, reviewer, reflector)
    async with (
        run_background(graph, checkpointer=saver, store=store) as one,
        run_background(graph, checkpointer=saver, store=store) as other,
    ):
        assert one is not None
        assert other is not None
        await wait_for_review(store)
        await asyncio.sleep(0.3)
    assert [*one.failures, *other.failures] == []
    assert sorted(reviewer.names) == ["茶", "雨"]
    assert reflector.read.count("I'm allergic to peanuts.") == 1
    facts = ReflectionStore(store).facts("s")
    assert [fact.text for fact in facts.values()] == ["I'm allergic to peanuts."]


@pytest.mark.slow
async def test_a_turn_goes_on_meanwhile(tmp_path: Path) -> None:
    graph, saver, store = await asyncio.to_thread(opened, tmp_path)
    async with run_background(graph, checkpointer=saver, store=store) as scheduler:
        assert scheduler is not None
        state = await graph.ainvoke({"messages": [("user", "茶的事情")]}, thread())
        assert state["messages"][-1].content == "All right, noted."
        await wait_for_review(store)
    assert not scheduler.failures


async def test_a_setting_turns_it_off(tmp_path: Path) -> None:
    graph, saver, store = await asyncio.to_thread(opened, tmp_path, background=False)
    async with run_background(graph, checkpointer=saver, store=store) as scheduler:
        assert scheduler is None
        await asyncio.sleep(0.2)
    assert ReflectionStore(store).facts("s") == {}


_SERVER = """
import asyncio, sys
from topicloom.app import open_checkpointer
async def serve():
    async with open_checkpointer():
        print("up", flush=True)
        await asyncio.sleep(float(sys.argv[1]))
asyncio.run(serve())
"""
_COMMAND = "from topicloom_app.cli import main; main()"
SERVERS = {
    "langgraph": [sys.executable, "-c", _SERVER, "600"],
    "serve": [sys.executable, "-c", _COMMAND, "serve", "--port", "0"],
    "ui": [sys.executable, "-c", _COMMAND, "ui", "s", "--port", "0", "--no-browser"],
}


@pytest.mark.slow
@pytest.mark.parametrize("background", ["true", "false"])
@pytest.mark.parametrize("server", SERVERS)
def test_every_server_does_it(tmp_path: Path, server: str, background: str) -> None:
    context = make_context(tmp_path, Settings(folder=tmp_path, embedder="hashing"))
    with context.open_graph() as (graph, *_):
        graph.invoke({"messages": [("user", "I'm allergic to peanuts.")]}, thread())
    given = {f"TOPICLOOM_REFLECTION__{name.upper()}": str(value) for name, value in DUE.items()}
    given |= {"TOPICLOOM_FOLDER": str(tmp_path), "TOPICLOOM_EMBEDDER": "hashing"}
    given |= {"TOPICLOOM_BACKGROUND": background, "PYTHONPATH": os.pathsep.join(sys.path)}
    given |= {"PYTHONUNBUFFERED": "1"}
    command = SERVERS[server]
    process = subprocess.Popen(command, env=os.environ | given, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline(), "it is up"
        deadline, found = time.monotonic() + (120 if background == "true" else 3), False
        while not found and time.monotonic() < deadline:
            time.sleep(0.3)
            with context.open_store() as store:
                found = bool(ReflectionStore(store).progress("s").marks)
        assert found == (background == "true")
    finally:
        process.kill()
        process.communicate()
