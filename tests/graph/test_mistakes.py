"""The likeliest mistakes: each costs one sentence that says what was wrong and what to do."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from tables import each_row

from topicloom import (
    ActivationPolicy,
    FileStorage,
    Settings,
    TopicLoomError,
    TopicLoomWarning,
    build_session_graph,
    get_session,
    local_checkpointer,
)
from topicloom_app.cli.console import CliOptions
from topicloom_app.cli.context import open_context

HELLO: Any = {"messages": [("user", "Hello")]}
THREAD: Any = {"configurable": {"thread_id": "yue"}}
build: Any = build_session_graph
settings: Any = Settings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOPICLOOM_FOLDER", str(tmp_path))
    return tmp_path


def graph() -> Any:
    return build_session_graph().compile(checkpointer=local_checkpointer())


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "setting": (lambda: settings(windw=3_000), "windw; did you mean 'window'?"),
    "group": (lambda: settings(activation={"flor": 3}), "activation.flor; did you mean 'floor'?"),
    "value": (lambda: settings(window="large"), "window cannot be used: Input should be a valid"),
    "order": (lambda: settings(activation={"floor": 30}), "floor <= usual <= ceiling, not 30"),
    "role of a model": (lambda: settings(role_models={"readr": "openai:x"}), "no role 'readr'"),
    "settings": (lambda: build(settings={"window": 3_000}), "give Settings(window=16_000)"),
    "provider": (lambda: build(model="opanai:gpt"), "did you mean 'openai'?"),
    "no provider": (lambda: build(model="gpt-5"), '"openai:gpt-5-mini"'),
    "model": (lambda: build(model={"name": "gpt"}), "or a LangChain chat model"),
    "domain": (lambda: build(domain={}), "domain={} cannot be used: give Domain(...)"),
    "roles": (lambda: build(roles="llm"), "roles='llm' cannot be used: give what"),
    "storage": (lambda: build(storage="postgres"), 'FileStorage("sessions"), or "store"'),
    "tools": (lambda: build(tools=print), "cannot be used: give a list of tools"),
    "key": (lambda: graph().invoke({"mesages": []}, THREAD), "did you mean 'messages'?"),
    "text": (lambda: graph().invoke("Hello", THREAD), '{"messages": [("user", "...")]}'),
    "list": (lambda: asyncio.run(graph().ainvoke([("user", "a")], THREAD)), '{"messages": ['),
    "nothing": (lambda: graph().invoke({"messages": []}, THREAD), "there is no new message"),
    "thread": (lambda: graph().invoke(HELLO), '{"configurable": {"thread_id": "..."}}'),
    "name": (lambda: open_context(CliOptions()).read_session("yua"), "(there: none yet)"),
    "store": (
        lambda: build(storage="store").compile(checkpointer=InMemorySaver()).invoke(HELLO, THREAD),
        "compile the graph with store=",
    ),
    "file": (lambda: FileStorage(__file__), "it is not a folder"),
}


@each_row("mistake", MISTAKES)
def test_a_mistake_is_named_in_one_line(mistake: str) -> None:
    make, said = MISTAKES[mistake]
    with pytest.raises(TopicLoomError) as error:
        make()
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_misspelt_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICLOOM_OWN", "of the application")
    monkeypatch.setenv("TOPICLOOM_WINDW", "3000")
    with pytest.warns(TopicLoomWarning, match="TOPICLOOM_WINDW; did you mean 'window'"):
        Settings()
    monkeypatch.delenv("TOPICLOOM_WINDW")
    monkeypatch.setenv("TOPICLOOM_ACTIVATION__FLOR", "3")
    with pytest.raises(TopicLoomError, match="TOPICLOOM_ACTIVATION__FLOR; did you mean 'floor'"):
        Settings()


def test_a_group_is_given_as_a_dict_or_as_it_is() -> None:
    policy = ActivationPolicy(floor=5)
    assert Settings(activation={"floor": 5}).activation == policy
    assert Settings(activation=policy).activation == policy


def test_a_database_that_another_program_holds(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = local_checkpointer()
    saver.conn.execute("PRAGMA busy_timeout = 0")
    session = build_session_graph().compile(checkpointer=saver)
    session.invoke(HELLO, THREAD)
    other = sqlite3.connect(folder / "checkpoints.sqlite")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(TopicLoomError, match="database is locked; end the program that holds it"):
        session.invoke(HELLO, THREAD)
    other.close()


def test_a_session_survives_a_restart(folder: Path) -> None:
    graph().invoke(HELLO, THREAD)
    asyncio.run(graph().ainvoke(HELLO, THREAD))
    assert get_session(graph(), THREAD).count == 4
    session, store = open_context(CliOptions(folder)).read_session("yue")
    assert [m.text for m in store.messages(session) if m.role == "user"] == ["Hello", "Hello"]


def test_a_checkpointer_that_forgets_is_warned_of(folder: Path) -> None:
    forgetful = build_session_graph().compile(checkpointer=InMemorySaver())
    forgetful.invoke(HELLO, THREAD)
    with pytest.raises(TopicLoomError, match=r"its checkpoints are not.*local_checkpointer\(\)"):
        open_context(CliOptions(folder)).read_session("yue")
    with pytest.warns(TopicLoomWarning, match=r"knows nothing of the 2 messages.*local_check"):
        graph().invoke(HELLO, THREAD)


def test_a_thread_that_nothing_keeps_is_warned_of() -> None:
    with pytest.warns(TopicLoomWarning, match=r"nothing keeps thread 'yue'.*local_checkpointer\("):
        build_session_graph().compile().invoke(HELLO, THREAD)
    with pytest.warns(TopicLoomWarning, match="nothing keeps thread 'zhou'"):
        asyncio.run(
            build_session_graph().compile().ainvoke(HELLO, {"configurable": {"thread_id": "zhou"}})
        )
