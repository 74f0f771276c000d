"""A message that needs nothing of what was said before recalls nothing, and nothing is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from sessions import last_receipt, open_graph, record, tell, thread

from topicloom import Settings
from topicloom.testing import SteadyReader, fake_roles

LEAST = Settings.model_fields["recall_least"].default


def talk() -> list[BaseMessage]:
    said = [
        "The plumber says the kitchen sink needs a new trap, 84 euros.",
        "My mother cannot eat walnuts, remember that for the cake.",
        "The oak for the kitchen floor comes on the 12th of May.",
        "Our landlord wants the keys of the cellar back.",
    ]
    return [m for text in said for m in (HumanMessage(text), AIMessage("Noted."))]


@pytest.mark.slow
@pytest.mark.parametrize(
    "idle", ["ok", "Thanks, good night!", "What is 31 times 12?", "谢谢，晚安"]
)
def test_nothing_is_read_and_nothing_is_quoted(tmp_path: Path, idle: str) -> None:
    reader = SteadyReader()
    graph = open_graph(tmp_path, fake_roles(reader=reader), recall_least=LEAST, embedder="default")
    record(graph, thread(), *talk())
    tell(graph, thread(), idle, keep=0)
    receipt = last_receipt(tmp_path, graph, thread())
    assert (receipt.quoted, reader.requests) == ((), [])


@pytest.mark.parametrize("asked", ["What does the plumber say?", "我妈不能吃什么？"])
def test_what_needs_something_is_read_and_quoted(tmp_path: Path, asked: str) -> None:
    reader = SteadyReader()
    graph = open_graph(tmp_path, fake_roles(reader=reader), recall_least=LEAST, embedder="default")
    record(graph, thread(), *talk())
    tell(graph, thread(), asked, keep=0)
    assert last_receipt(tmp_path, graph, thread()).quoted
    assert reader.requests


@pytest.mark.slow
def test_active_topics_stay_active(tmp_path: Path) -> None:
    graph = open_graph(tmp_path, recall_least=LEAST, embedder="default")
    record(graph, thread(), *talk())
    tell(graph, thread(), "What does the plumber say?", keep=0)
    before = last_receipt(tmp_path, graph, thread()).active
    tell(graph, thread(), "ok", "Thank you!")
    assert last_receipt(tmp_path, graph, thread()).active == before
    assert before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("standing", "later"),
    [
        ("Whenever I sneeze with a loud 'Achoo!', say: here is a tissue for you.", "Achoo!"),
        ("每次我说早上好，你都要用法语回答我。", "早上好！"),
    ],
)
def test_what_the_user_asked_for_once_and_for_all_is_quoted(
    tmp_path: Path, standing: str, later: str
) -> None:
    graph = open_graph(tmp_path, recall_least=LEAST, embedder="default")
    record(graph, thread(), HumanMessage(standing), AIMessage("I will."), *talk())
    tell(graph, thread(), later, keep=0)
    quoted = last_receipt(tmp_path, graph, thread()).quoted
    assert "m1" in {quote for topic in quoted for quote in topic.quotes}
    tell(graph, thread(), "ok", keep=0)
    assert last_receipt(tmp_path, graph, thread()).quoted == ()
