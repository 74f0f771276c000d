"""The session that ships is the packaged recording, as today's code would replay it.

Where one of these fails, `python scripts/build_sample.py` makes it anew.
"""

from __future__ import annotations

import io
import json
import runpy
from collections.abc import Hashable, Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from langchain_core.messages import HumanMessage
from rich.console import Console

from topicloom.graph.compiled import CompiledSessionGraph
from topicloom.memory.memory import Memory
from topicloom.nodes.runs import name_thread
from topicloom.settings import Settings
from topicloom.storage.files import FileStorage
from topicloom_app.cli.context import make_context
from topicloom_app.cli.sample import open_sample
from topicloom_app.recordings.conversations import Conversation
from topicloom_app.recordings.replay import find_sample, load_first_conversation

SCRIPT = runpy.run_path(str(Path(__file__).parents[3] / "scripts" / "build_sample.py"))
ANEW = "the packaged session is not that of today's code: run python scripts/build_sample.py"
ALIKE = 0.95
"""Share of what is remembered that has to be the same: on another processor the vectors differ in
their last digits, and so may the least of many quotes."""
NAME = find_sample().stem
THREAD = name_thread(NAME)
Facts = set[tuple[Hashable, ...]]


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[CompiledSessionGraph]:
    """The graph of `topicloom ui`, which has printed nothing."""
    console = Console(file=io.StringIO())
    context = make_context(tmp_path, Settings())
    with open_sample(context, console, find_sample()) as (graph, *_):
        assert isinstance(console.file, io.StringIO)
        assert console.file.getvalue() == "", ANEW
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


def test_a_question_is_answered_from_it(graph: CompiledSessionGraph) -> None:
    graph.invoke({"messages": [HumanMessage("Which illness does Mum have?")]}, THREAD)
    (receipt,) = Memory.of(graph, THREAD).receipts(1)
    assert "m53" in {quote for topic in receipt.quoted for quote in topic.quotes}


def test_the_moment_that_the_page_leads_to_is_in_it(graph: CompiledSessionGraph) -> None:
    receipts = {receipt.user: receipt for receipt in Memory.of(graph, THREAD).receipts()}
    assert "m53" in {quote for topic in receipts["m293"].quoted for quote in topic.quotes}, ANEW


def test_the_archive_has_no_place_or_time_of_the_machine_that_made_it() -> None:
    with ZipFile(find_sample().with_suffix(".zip")) as packed:
        assert {entry.date_time for entry in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        text = b"".join(packed.read(name) for name in packed.namelist())
    assert b"/tmp" not in text
    assert str(Path.home()).encode() not in text


@pytest.mark.slow
def test_it_is_what_todays_code_makes(tmp_path: Path) -> None:
    packed, made = tmp_path / "packed", tmp_path / "made"
    with ZipFile(find_sample().with_suffix(".zip")) as archive:
        archive.extractall(packed)
    SCRIPT["make_session"](made)
    assert list_keys(packed) == list_keys(made), ANEW
    for then, now in zip(list_facts(packed), list_facts(made), strict=True):
        assert len(then & now) >= ALIKE * len(then | now), ANEW


def list_keys(folder: Path) -> dict[str, set[str]]:
    """The keys of the records of each log: the form that a session is stored in."""
    found = dict[str, set[str]]()
    for file in folder.rglob("*.jsonl"):
        keys = found.setdefault(file.parent.name + file.stem, set())
        for line in file.read_text("utf-8").splitlines():
            keys.update(json.loads(line))
    return found


def list_facts(folder: Path) -> Iterator[Facts]:
    """What a session remembers: messages by topic, quotes by turn, tokens by turn and section."""
    memory = Memory(FileStorage(folder), NAME)
    yield {(topic.name, said.id) for topic in memory.topics() for said in topic.messages()}
    receipts = memory.receipts()
    yield {(r.turn, q) for r in receipts for topic in r.quoted for q in topic.quotes}
    yield {(r.turn, name, tokens) for r in receipts for name, tokens in r.sections.items()}
