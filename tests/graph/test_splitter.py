"""What a splitter behind a real HTTP server says is what becomes of the messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from openai_behaviours import Answer, Reply, Request, Status, router
from openai_server import OpenAIServer

from topicloom import Memory, Settings, TurnOptions, build_session_graph, open_session
from topicloom.hosting import Graph

CONFIG: RunnableConfig = {"configurable": {"thread_id": "sorted"}}
SPLITTER, BRIEF = "You sort messages", "You write the brief"
SUBJECTS = ("boiler", "novel", "marathon", "tax", "kitchen", "Galway")


def talk(rounds: int, *, each: int = 4) -> list[BaseMessage]:
    """Short rounds, some about each subject before the next one's turn."""
    return [
        message
        for n in range(rounds)
        for message in (
            HumanMessage(f"Word {n} on the {SUBJECTS[n // each % len(SUBJECTS)]}."),
            AIMessage("Noted."),
        )
    ]


def shown(request: Request) -> list[tuple[str, str]]:
    """The ids and texts of the messages that a splitter is to sort."""
    return re.findall(r"^\[(m\d+)\] \w+: (.*)$", str(request["messages"][1]["content"]), re.M)


def sort_by(name: Callable[[str], str], most: int = 10_000) -> Callable[[Request], Reply]:
    """A splitter that writes an assignment for each message, as many as its answer holds."""

    def split(request: Request) -> Reply:
        rows, last = [], "boiler"
        for id_, text in shown(request):
            last = name(text) or last
            rows.append(f'<assignment msg_id="{id_}" {last}></assignment>')
        text = f"<topic_split>{''.join(rows[:most])}"
        return Reply(text, finish_reason="length") if len(rows) > most else Reply(text)

    return split


def to_new(text: str) -> str:
    subject = next((s for s in SUBJECTS if s in text), "")
    return f'topic="new" topic_name="About the {subject}"' if subject else ""


def keep_name(request: Request) -> Reply:
    """A brief writer that keeps the name."""
    name = str(request["messages"][-1]["content"]).partition("so far ===\n")[2].split("\n")[0]
    return Reply(f"<topic_brief><name>{name}</name><brief>Of {name}.</brief></topic_brief>")


def split(
    server: OpenAIServer,
    folder: Path,
    said: Sequence[BaseMessage],
    splitter: Answer,
    others: Mapping[str, Answer] | None = None,
) -> Graph:
    """A session in which all that was said is sorted by a splitter."""
    roles = {SPLITTER: splitter, BRIEF: keep_name, **(others or {})}
    server.otherwise(router(roles, Reply("Noted.")))
    settings = Settings(
        window=10_000, folder=folder, fsync=False, base_url=server.base_url, api_key="k"
    )
    graph = build_session_graph(
        model="openai:strong", cheap_model="openai:cheap", settings=settings
    ).compile(checkpointer=InMemorySaver())
    told: Any = {"messages": list(said)}
    graph.invoke(told, CONFIG, context=TurnOptions(answer=False))
    hello: Any = {"messages": [HumanMessage("Hello!")]}
    graph.invoke(hello, CONFIG, context=TurnOptions(keep_messages=0))
    return graph


def subjects_of(graph: Graph) -> dict[str, list[str]]:
    """The subjects of the user's messages in each topic."""
    return {
        t.name: sorted({s for m in t.messages() for s in SUBJECTS if s in m.text})
        for t in Memory.of(graph, CONFIG).topics()
    }


def count_sorted(graph: Graph) -> int:
    """The messages that are in topics."""
    return sum(t.count for t in Memory.of(graph, CONFIG).topics())


GOLD = {f"About the {s}": [s] for s in SUBJECTS}


@pytest.mark.slow
@pytest.mark.parametrize("most", [10_000, 100], ids=["whole answers", "answers that are cut"])
def test_there_are_the_topics_that_it_names_and_no_others(
    openai_server: OpenAIServer, tmp_path: Path, most: int
) -> None:
    graph = split(openai_server, tmp_path, talk(200), sort_by(to_new, most))
    assert subjects_of(graph) == GOLD
    assert count_sorted(graph) == 400
    asked = [r for r in openai_server.requests if SPLITTER in str(r["messages"][0]["content"])]
    assert all("max_tokens" not in r and "max_completion_tokens" not in r for r in asked)


@pytest.mark.slow
def test_what_it_never_sorts_goes_on_with_what_it_sorted(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    def leave_out(text: str) -> str:
        return 'topic_id="t99"' if "Word 17 " in text else to_new(text)

    graph = split(openai_server, tmp_path, talk(24), sort_by(leave_out))
    assert count_sorted(graph) == 48
    assert "no answer sorted" in str(Memory.of(graph, CONFIG).receipts(1))


@pytest.mark.slow
def test_small_talk_becomes_no_topic(openai_server: OpenAIServer, tmp_path: Path) -> None:
    chat = [HumanMessage("Good morning!"), AIMessage("Good morning, what a day.")]

    def name(text: str) -> str:
        return 'topic="small_talk"' if "morning" in text else to_new(text)

    graph = split(openai_server, tmp_path, [*chat, *talk(24)], sort_by(name))
    assert subjects_of(graph) == GOLD | {"Loose ends": []}
    assert count_sorted(graph) == 50


@pytest.mark.slow
def test_a_topic_may_refer_to_one_that_the_same_answer_opens(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    def name(text: str) -> str:
        also = ' also="about the kitchen"' if "Word 2 " in text else ""
        return f"{to_new(text)}{also}" if to_new(text) else ""

    graph = split(openai_server, tmp_path, talk(24), sort_by(name))
    session, store = open_session(graph, CONFIG)
    kitchen = next(t for t in store.topic_table(session) if "kitchen" in t.name)
    assert list(store.ranges(session).references(kitchen.id)) == [(5, 6)]


@pytest.mark.slow
def test_a_name_where_an_id_was_meant_is_that_topic(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    def name(text: str) -> str:
        return to_new(text).replace("topic_name", "topic_id").replace("new", "existing_active")

    assert subjects_of(split(openai_server, tmp_path, talk(48), sort_by(name))) == GOLD


@pytest.mark.slow
def test_without_an_arbiter_nothing_is_said_of_boundaries(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    split(openai_server, tmp_path, talk(24), sort_by(to_new))
    asked = [r for r in openai_server.requests if SPLITTER in str(r["messages"][0]["content"])]
    assert not [r for r in asked if "another matter" in str(r["messages"][1]["content"])]


@pytest.mark.slow
def test_where_its_server_is_down_the_index_sorts(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    graph = split(openai_server, tmp_path, talk(24), Status(400, message="down"))
    assert "no answer sorted" in str(Memory.of(graph, CONFIG).receipts(1))


@pytest.mark.slow
def test_a_brief_writer_sees_what_the_topic_has_to_be_told_from(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    split(openai_server, tmp_path, talk(24), sort_by(to_new))
    asked = [r for r in openai_server.requests if BRIEF in str(r["messages"][0]["content"])]
    lines = str(asked[0]["messages"][-1]["content"]).splitlines()
    assert lines[0] == "=== Other topics ==="
    assert {line.partition(":")[0] for line in lines[1:6]} == set(GOLD) - {lines[-2]}


@pytest.mark.slow
def test_where_the_brief_writer_fails_the_names_of_the_splitter_stand(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    down: dict[str, Answer] = {BRIEF: Status(400, message="down")}
    graph = split(openai_server, tmp_path, talk(24), sort_by(to_new), down)
    assert subjects_of(graph) == GOLD
    assert all(t.brief for t in Memory.of(graph, CONFIG).topics())
