"""The graph as a LangGraph server takes it: compiled, without checkpointer or store.

The server brings its own checkpointer, or opens the one below, by which it deletes sessions with
their threads. Settings come from `TOPICLOOM_*`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from topicloom.graph.checkpoints import CHECKPOINTS
from topicloom.graph.deletion import delete_with_threads
from topicloom.graph.deps import default_folder
from topicloom.graph.session import build_session_graph
from topicloom.settings import Settings
from topicloom.storage.disk import append_bytes

graph = build_session_graph().compile()


@asynccontextmanager
async def open_checkpointer() -> AsyncIterator[AsyncSqliteSaver]:
    """Open the checkpoints of the folder of sessions, which go with their sessions.

    They are those of the command line, which shows what was said over the server.
    """
    path = (Settings().folder or default_folder()) / CHECKPOINTS
    append_bytes(path, b"", fsync=False)  # its owner's alone
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        yield delete_with_threads(saver, graph)
