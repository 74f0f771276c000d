"""The session that ships is the packaged recording, opened as `topicloom ui` opens it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest
from langchain_core.messages import HumanMessage

from topicloom import Memory, Settings, get_session
from topicloom.hosting import CompiledSessionGraph, name_thread
from topicloom_app import Conversation, find_sample
from topicloom_app.cli.context import make_context
from topicloom_app.cli.sample import open_sample
from topicloom_app.recordings.replay import load_first_conversation
from topicloom_app.ui.app import make_inspector

ROOT = Path(__file__).parents[3]
ANEW = "the packaged session is not that of today's code: run bin/generate --all"
THREAD = name_thread(find_sample().stem)


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[CompiledSessionGraph]:
    """The graph of `topicloom ui`."""
    with open_sample(make_context(tmp_path, Settings()), find_sample()) as (graph, *_):
        yield graph


@pytest.fixture
def conversation() -> Conversation:
    return load_first_conversation(find_sample(), None)


def test_every_message_is_in_it(graph: CompiledSessionGraph, conversation: Conversation) -> None:
    said = [(kept.source, kept.text) for kept in Memory.of(graph, THREAD).history(limit=None)]
    assert said == [(message.id, message.text) for message in conversation.messages], ANEW


def test_it_has_topics_with_names(graph: CompiledSessionGraph) -> None:
    topics = Memory.of(graph, THREAD).topics()
    assert len(topics) > 15
    assert all(topic.name and topic.count for topic in topics if not topic.loose)


async def test_the_page_and_the_documents_count_as_the_commands_do(
    graph: CompiledSessionGraph,
) -> None:
    topics, count = len(Memory.of(graph, THREAD).topics()), get_session(graph, THREAD).count
    name, session = find_sample().stem, f"/api/session/{find_sample().stem}"
    app = make_inspector(graph, list, name, key="k", hosts=(), write_page=lambda *_: "")
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")
    async with client as page:
        await page.get("/?key=k")
        assert (await page.get(session)).json()["count"] == count
        assert len((await page.get(f"{session}/topics")).json()) == topics
    for document in ("README.md", "docs/start/tutorial.md"):
        told = " ".join((ROOT / document).read_text("utf-8").split())
        assert f"A chat of {count} messages" in told, document
        assert f"tokens, in {topics} topics." in told, document


@pytest.mark.slow
def test_a_question_is_answered_from_it(graph: CompiledSessionGraph) -> None:
    graph.invoke({"messages": [HumanMessage("Which illness does Mum have?")]}, THREAD)
    (receipt,) = Memory.of(graph, THREAD).receipts(1)
    assert "m53" in {quote for topic in receipt.quoted for quote in topic.quotes}


@pytest.mark.slow
def test_the_moment_that_the_page_leads_to_is_in_it(graph: CompiledSessionGraph) -> None:
    memory = Memory.of(graph, THREAD)
    turns = [r.turn for r in memory.receipts() if r.user in ("m291", "m293")]
    steps = [memory.why_not(turn, "m53").step for turn in turns]
    assert [step.startswith("quoted") for step in steps] == [True, True], f"{steps}: {ANEW}"


def test_the_archive_has_no_place_or_time_of_the_machine_that_made_it() -> None:
    with ZipFile(find_sample().with_suffix(".zip")) as packed:
        assert {entry.date_time for entry in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        text = b"".join(packed.read(name) for name in packed.namelist())
    assert b"/tmp" not in text
    assert str(Path.home()).encode() not in text
