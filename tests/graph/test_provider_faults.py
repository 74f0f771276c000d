"""What a provider says is not kept: errors, answers and arguments of any size, keys and prompts."""

from __future__ import annotations

import json
import re
import sqlite3
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.providers import KEY, ROW
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from openai_behaviours import Answer, Call, Reply, Request, Status, router
from openai_server import OpenAIServer

from topicloom import (
    FileStorage,
    Receipt,
    ReplyError,
    SessionStore,
    Settings,
    TurnOptions,
    build_session_graph,
    get_session,
)

pytestmark = pytest.mark.long

CONFIG: RunnableConfig = {"configurable": {"thread_id": "faults"}}
SECRET = "my PIN is QQSECRETQQ, and the door opens at dusk"
PROMPT = 40_000
"""Bytes of a request at most, with a window of 1,600 tokens."""


def echo(request: Request) -> Status:
    return Status(400, message="bad prompt: " + json.dumps(request["messages"]))


DONE = Reply("Noted.")
INNER: dict[str, Answer] = {
    "a large error": Status(400, message="E" * 3_000_000),
    "the prompt": echo,
    "the key": Status(401, message=f"Incorrect API key provided: Bearer {KEY}"),
    "a large answer": Reply("<summary>" + "x y " * 1_000_000),
    "large fields": Reply(
        "<topic_result><relevance_score>0.9</relevance_score><summary>" + "S " * 300_000
    ),
    "large ids": Reply("<referenced_messages>" + "m" + "9" * 1_000_000),
}


OTHERS = {
    "reader": "You read topics",
    "router": "You find the topics",
    "brief": "You write the brief",
    "rewriter": "You rewrite the newest",
    "arbiter": "You decide whether",
}
"""What the system messages of the roles begin with."""


def split_all(request: Request) -> Reply:
    ids = dict.fromkeys(re.findall(r"\[(m\d+)\]", json.dumps(request["messages"][1:])))
    name = 'topic="new" topic_name="T{}"'
    rows = (f"<assignment msg_id={i!r} {name.format(int(i[1:]) // 6)}></assignment>" for i in ids)
    return Reply(f"<topic_split>{''.join(rows)}</topic_split>")


def answer_by(inner: Answer, reply: Answer) -> Any:
    """The main model and the splitter as told, all others by `inner`."""
    return router({"You sort messages": split_all, **dict.fromkeys(OTHERS.values(), inner)}, reply)


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.sqlite")) as saver:
        yield saver


def open_graph(server: OpenAIServer, folder: Path, saver: SqliteSaver, **changes: Any) -> Any:
    settings = Settings(
        window=1_600,
        topic_window=1_500,
        folder=folder / "sessions",
        embedder="hashing",
        base_url=server.base_url,
        api_key=KEY,
        fsync=False,
        max_retries=0,
        **changes,
    )
    named = {"rewriter": "openai:fake", "arbiter": "openai:fake"}
    built = build_session_graph(model="openai:fake", role_models=named, settings=settings)
    return built.compile(checkpointer=saver)


def text(number: int) -> str:
    about = ("tea", "rain", "bread", "music")[number // 3 % 4]
    if number % 9 == 8:
        return f"Did you forget? I told you about {about}, message {number}"
    return f"{number} about {about} " + f"{about} word{number} " * 30


def remember(graph: Any) -> None:
    """Record a conversation that moves into topics."""
    said = [("user", SECRET if number == 1 else text(number)) for number in range(16)]
    graph.invoke({"messages": said}, CONFIG, context=TurnOptions(answer=False, keep_messages=0))


def talk(graph: Any, number: int) -> list[str]:
    """Take a turn; returns what is streamed to the application beside the reply, as JSON."""
    said = {"messages": [("user", text(number))]}
    return [json.dumps(event) for event in graph.stream(said, CONFIG, stream_mode="custom")]


def receipts(graph: Any, folder: Path) -> list[Receipt]:
    session = get_session(graph, CONFIG)
    return SessionStore(FileStorage(folder / "sessions").open("faults")).receipts(session)


def test_what_inner_roles_are_told(
    openai_server: OpenAIServer, tmp_path: Path, saver: SqliteSaver
) -> None:
    openai_server.otherwise(answer_by(Status(500), DONE))
    graph = open_graph(openai_server, tmp_path, saver)
    remember(graph)
    events = talk(graph, 16)
    for turn, (name, fault) in enumerate(INNER.items(), 17):
        openai_server.otherwise(answer_by(fault, DONE))
        events += talk(graph, turn)
        told = receipts(graph, tmp_path)[-1].calls
        assert {"rewriter"} <= {c.role for c in told if c.failure} <= {*OTHERS}, name
        spent = {c.role for c in told if c.failure and c.input_tokens}
        assert ("rewriter" in spent) == isinstance(fault, Reply), "what was paid for is counted"
    check_kept(tmp_path, events)
    assert max(len(json.dumps(r)) for r in openai_server.requests) < PROMPT


def check_kept(folder: Path, events: list[str]) -> None:
    """No row is large, no receipt has a prompt, and a key is nowhere."""
    with sqlite3.connect(folder / "checkpoints.sqlite") as database:
        sizes = "select length(checkpoint) + length(metadata) from checkpoints union all select "
        rows = database.execute(sizes + "length(value) from writes").fetchall()
    assert max(rows) < (ROW,)
    (turns,) = folder.rglob("turns.jsonl")
    for said in [*events, *turns.read_text("utf-8").splitlines()]:
        assert len(said) < ROW
        assert not re.search("QQSECRETQQ|opens at dusk|You read topics|You rewrite", said)
    assert not [p for p in folder.rglob("*") if p.is_file() and KEY.encode() in p.read_bytes()]


def test_what_the_main_model_says(
    openai_server: OpenAIServer, tmp_path: Path, saver: SqliteSaver
) -> None:
    openai_server.otherwise(answer_by(Status(500), DONE))
    graph = open_graph(openai_server, tmp_path, saver, reply_attempts=1)
    remember(graph)
    huge = {"query": "tea " * 2_000, "when": "last month " * 200}

    def search(request: Request) -> Reply:
        return (
            Reply("", tool_calls=[Call("activate_topic", huge)]) if request.get("tools") else DONE
        )

    openai_server.otherwise(answer_by(Status(500), search))
    events = talk(graph, 16)
    asked = receipts(graph, tmp_path)[-1].searches
    assert asked
    assert all(len(s.query) + len(s.when or "") <= 600 for s in asked)
    for fault in ("a large error", "the prompt", "the key"):
        openai_server.otherwise(answer_by(Status(500), INNER[fault]))
        with pytest.raises(ReplyError) as failed:
            talk(graph, 17)
        shown = "".join(traceback.format_exception(failed.value))
        assert len(str(failed.value)) < 600
        assert KEY not in shown
        assert "QQSECRETQQ" not in shown
    check_kept(tmp_path, events)
