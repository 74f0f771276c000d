"""A very long message costs a turn little more than a short one, and nobody else waits for it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from sessions import last_receipt, open_graph, thread

from topicloom import Settings, build_session_graph, get_session, local_checkpointer
from topicloom.state.safe_text import shorten_query
from topicloom.testing import Clock

FEW, MANY = 125_000, 1_000_000
"""Characters of a long message, and of one that is eight times as long."""
SOON = 3.0
"""Seconds of CPU of a turn after which it is compared with one of fewer characters: a machine may
be slow."""
GROWTH = 24
"""Times as long as for few characters: at most eight if linear, 64 if quadratic."""
TOPICS = ("tea", "boat", "oven", "dog")


@pytest.mark.long
@pytest.mark.parametrize(
    "unit", ["\n", "\n ", "\r#", "\\", "\n--", "中。", "。", "a\n", "👩\u200d👧 "]
)
def test_a_message_of_a_million_characters(tmp_path: Path, unit: str) -> None:
    spent = spend(tmp_path / "many", unit, MANY)
    if spent > SOON:
        assert spent < GROWTH * spend(tmp_path / "few", unit, FEW)


def spend(folder: Path, unit: str, length: int) -> float:
    """CPU seconds of the slowest turn of four, the first of which has a long message."""
    folder.mkdir()
    graph = build_session_graph(
        settings=Settings(folder=folder, window=2_000, fsync=False), clock=Clock()
    ).compile(checkpointer=local_checkpointer(folder))

    def say(text: str) -> float:
        began = time.process_time()
        graph.invoke({"messages": [HumanMessage(text)]}, thread())
        return time.process_time() - began

    for number in range(12):
        topic = TOPICS[number % len(TOPICS)]
        say(f"{topic}: number {number} " + " ".join(f"w{number}x{n}" for n in range(60)))
    assert get_session(graph, thread()).topics
    first = say("tea: " + unit * (length // len(unit)) + "a")
    return max(first, *(say(f"{topic}: and now? " + "w " * 200) for topic in TOPICS[:3]))


@pytest.mark.filterwarnings("ignore:left out of the prompt")
def test_topics_are_searched_with_its_beginning_and_its_end(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    text = "What of the boat? " + "x " * 50_000 + "And the oven?"
    graph.invoke({"messages": [HumanMessage(text)]}, thread())
    query = graph.get_state(thread()).values["turn"]["query"]
    assert len(query) < 10_000
    assert query.startswith("What of the boat?")
    assert query.endswith("And the oven?")
    assert last_receipt(tmp_path, graph, thread()).user == "m1"


def test_another_message_is_searched_with_as_it_is() -> None:
    assert shorten_query("a " * 4_000) == "a " * 4_000
