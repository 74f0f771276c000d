"""A deadline ends the work: neither threads nor the process outlive readers that hang."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from openai_behaviours import Hang
from openai_server import OpenAIServer

pytestmark = pytest.mark.long

_TURNS = """
import asyncio
import sys
url, folder, how, *sys.path[:] = sys.argv[1:]
from threading import enumerate as list_threads
from langgraph.checkpoint.memory import InMemorySaver
from topicloom import Settings, TurnOptions, build_session_graph
settings = Settings(window=1_500, folder=folder, embedder="hashing", fsync=False, base_url=url,
                    api_key="k", role_seconds=2, reply_seconds=3_600, max_retries=2)
built = build_session_graph(role_models={"reader": "openai:slow"}, settings=settings)
graph = built.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "s"}}
past = [("user", f"{n} about {n // 4} " + f"word{n // 4} thing{n} " * 20) for n in range(12)]
graph.invoke({"messages": past}, config, context=TurnOptions(answer=False))
for n in range(4):
    said, options = {"messages": [("user", f"And {n}?")]}, TurnOptions(keep_messages=0)
    if how == "sync":
        graph.invoke(said, config, context=options)
    else:
        asyncio.run(graph.ainvoke(said, config, context=options))
print(sum(thread.name != "topicloom-ahead" for thread in list_threads()) - 1)
"""


@pytest.mark.parametrize("how", ["sync", "async"])
def test_readers_that_hang(openai_server: OpenAIServer, tmp_path: Path, how: str) -> None:
    openai_server.otherwise(Hang(600))
    given = [openai_server.base_url, str(tmp_path), how, *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", _TURNS, *given], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, "")
    asked = len(openai_server.requests)
    assert asked >= 1, "readers were asked, in the first turn: then they rest"
    assert int(done.stdout) == 0, "of three turns later, none is at work"


_WITHOUT_ASYNC = """
import asyncio
import sys
folder, *sys.path[:] = sys.argv[1:]
from threading import Event
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.memory import InMemorySaver
from topicloom import Settings, TurnOptions, build_session_graph

class Hanging(BaseChatModel):
    _llm_type = "hanging"
    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        Event().wait(3_600)

settings = Settings(window=1_500, folder=folder, embedder="hashing", fsync=False,
                    role_seconds=0.2, reply_deadline=0.2, reply_attempts=1)
built = build_session_graph(role_models={"reader": Hanging()}, settings=settings)
graph = built.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "s"}}
past = [("user", f"{n} about {n // 4} " + f"word{n // 4} thing{n} " * 20) for n in range(12)]

async def talk():
    await graph.ainvoke({"messages": past}, config, context=TurnOptions(answer=False))
    for n in range(20):
        said, options = {"messages": [("user", f"And {n}?")]}, TurnOptions(keep_messages=0)
        await graph.ainvoke(said, config, context=options)
    mute = build_session_graph(role_models={"responder": Hanging()}, settings=settings)
    mute = mute.compile(checkpointer=InMemorySaver())
    for n in range(20):
        try:
            await mute.ainvoke({"messages": [("user", "Hello")]},
                               {"configurable": {"thread_id": f"t{n}"}})
        except Exception as error:
            print(type(error).__name__)

asyncio.run(talk())
"""


def test_models_without_an_async_form_that_hang(tmp_path: Path) -> None:
    """LangChain runs them in asyncio's own pool: full of them, no turn goes on in the process."""
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_ASYNC, str(tmp_path), *sys.path],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["ReplyError"] * 20
