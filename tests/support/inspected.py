"""A session to inspect: talks of three matters, and messages that try to be markup."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.memory import InMemoryStore

from topicloom import (
    RESPONDER,
    FileStorage,
    Settings,
    TurnOptions,
    build_session_graph,
    default_embedder,
    embedded_roles,
    local_checkpointer,
)
from topicloom.hosting import CompiledSessionGraph
from topicloom_app import RecordedResponder, find_sample, replay_conversation
from topicloom_app.cli._pages import write_page
from topicloom_app.cli.replay import RECALL, WINDOW
from topicloom_app.recordings.replay import load_first_conversation
from topicloom_app.serve.web import LOCAL
from topicloom_app.ui.app import make_inspector
from topicloom_app.ui.guard import Guard

NAME = "lake"
THREAD: RunnableConfig = {"configurable": {"thread_id": NAME}}
HOSTILE = (
    "<script>window.caught = 1</script>",
    "<img src=x onerror='window.caught = 2'>",
    "<svg onload='window.caught = 3'></svg><a href='javascript:window.caught = 4'>here</a>",
    "[click](javascript:window.caught=5) ![x](http://127.0.0.1:9/x.png)",
    "</p></article><style>* { display: none }</style><iframe srcdoc='<script>'></iframe>",
    'data: {"type": "end"}\n\nevent: x\n\n{{constructor.constructor(\'caught=6\')()}}',
    "\u202egnp.exe [m1] [m99999] " + "x" * 25_000,
)
"""Messages that would do something if they were anything else than text."""


@contextmanager
def open_folder(folder: Path, **options: Any) -> Iterator[CompiledSessionGraph]:
    """The graph over a folder of sessions."""
    settings = Settings.model_validate(
        {"folder": folder, "fsync": False, "window": 8_000} | options.pop("settings", {})
    )
    storage = FileStorage(folder, fsync=False)
    builder = build_session_graph(settings=settings, storage=storage, **options)
    saver = local_checkpointer(folder)
    yield builder.compile(checkpointer=saver, store=InMemoryStore())
    saver.close()


@contextmanager
def open_sample(folder: Path) -> Iterator[CompiledSessionGraph]:
    """The graph over a session in which the packaged sample was said, turn by turn: a minute."""
    roles = embedded_roles(default_embedder())
    recorded = RecordedResponder(otherwise=roles[RESPONDER])
    settings = {"window": WINDOW, "recall_share": RECALL}
    with open_folder(folder, roles=roles.replace(RESPONDER, recorded), settings=settings) as graph:
        conversation = load_first_conversation(find_sample(), None)
        for _ in replay_conversation(graph, recorded, conversation, THREAD):
            pass
    with open_folder(folder, settings=settings) as graph:  # from here on nothing is recorded
        yield graph


def inspect(graph: CompiledSessionGraph, *, editing: bool = False) -> Guard:
    """The inspector of all sessions of the graph's folder."""
    folder = graph.builder.deps.settings.folder
    assert folder is not None

    def list_names() -> list[str]:
        return FileStorage(folder).sessions()

    return make_inspector(
        graph, list_names, NAME, key="secret", hosts=LOCAL, write_page=write_page, editing=editing
    )


def fill_session(graph: CompiledSessionGraph) -> None:
    """Fill the session: t1 (m1 to m12) is on a kitchen, t2 (m13 to m24) on runs, t3 (m25, m26) on
    a ferry; m27, a question, and its answer are in no topic yet."""
    said: list[Any] = []
    for n in range(1, 7):
        said += _say(2 * n - 1, f"The kitchen worktop of oak costs {n}40 euros", f"Noted: {n}40.")
    for n in range(7, 13):
        said += _say(2 * n - 1, f"Today I ran {n} kilometres for the marathon", f"Well run, {n}.")
    said += _say(25, "The ferry leaves at nine", "Noted, nine.")
    graph.invoke({"messages": said}, THREAD, context=TurnOptions(answer=False))
    graph.invoke(
        {"messages": [HumanMessage("When does the ferry leave?")]},
        THREAD,
        context=TurnOptions(keep_messages=0),
    )


def _say(number: int, text: str, reply: str) -> list[Any]:
    time = {"time": f"2026-03-{number:02}T09:00:00+01:00"}
    return [
        HumanMessage(text, additional_kwargs=time),
        AIMessage(reply, additional_kwargs=time),
    ]
