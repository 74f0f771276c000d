"""A turn searches with the rounds that it goes on with: they say which topics it is in."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from sessions import kept, last_receipt, open_graph, record, tell, thread

from topicloom import SPLITTER, Settings, Topic, default_embedder, embedded_roles, get_session
from topicloom.hosting import Graph
from topicloom.search.message_search import Hits, Query
from topicloom.search.turn_topics import TurnContext
from topicloom.testing import TaggedSplitter
from topicloom.topics.session_index import SessionIndex

CONFIG = thread()
SUBJECTS = {
    "roses": "Roses, number {n}: the bed by the hedge, the pruning, the feed and the greenfly.",
    "lisbon": "Lisbon, number {n}: the flights in May, the river hotel, the trams and the tiles.",
}
NEXT = "Thanks! And which part of it comes after that one?"


def said(subject: str, numbers: range) -> list[BaseMessage]:
    lines = [f"{subject}: {SUBJECTS[subject].format(n=n)}" for n in numbers]
    return [m for line in lines for m in (HumanMessage(line), AIMessage(f"{subject}: Noted."))]


def kept_topics(folder: Path, graph: Graph) -> list[Topic]:
    session = get_session(graph, CONFIG)
    return list(kept(folder, session).topic_table(session))


@pytest.mark.slow
def test_a_turn_searches_with_what_it_goes_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = list[TurnContext]()
    search = SessionIndex.search

    def watch(self: SessionIndex, query: Query) -> Hits:
        contexts.append(query.context)
        return search(self, query)

    monkeypatch.setattr(SessionIndex, "search", watch)
    roles = embedded_roles(default_embedder()).replace(SPLITTER, TaggedSplitter())
    graph = open_graph(tmp_path, roles, window=16_000, recall_tokens=250)
    for n in range(0, 12, 3):
        for subject in SUBJECTS:
            record(graph, CONFIG, *said(subject, range(n, n + 3)))
    tell(graph, CONFIG, NEXT, keep=0)
    # Those since Lisbon came up again.
    (context,) = {c.key: c for c in contexts if c.key[0]}.values()
    assert all("isbon" in m.text for m in context.read())
    assert context.continues > 0.5
    # The receipt says so.
    about = last_receipt(tmp_path, graph, CONFIG).about
    names = {t.id: t.name for t in kept_topics(tmp_path, graph)}
    assert names[next(iter(about))] == "lisbon"
    assert list(about.values()) == sorted(about.values(), reverse=True)
    assert 0.5 < sum(about.values()) <= 1.01


@pytest.mark.slow
def test_a_message_that_needs_nothing_is_about_nothing(tmp_path: Path) -> None:
    roles = embedded_roles(default_embedder()).replace(SPLITTER, TaggedSplitter())
    least = Settings.model_fields["recall_least"].default
    graph = open_graph(tmp_path, roles, window=16_000, recall_least=least)
    record(graph, CONFIG, *said("roses", range(4)), *said("lisbon", range(4)))
    tell(graph, CONFIG, "Thanks, good night!", keep=0)
    receipt = last_receipt(tmp_path, graph, CONFIG)
    assert receipt.idle
    assert receipt.about == {}


@pytest.mark.slow
def test_the_receipt_says_to_which_topic_a_message_returns(tmp_path: Path) -> None:
    roles = embedded_roles(default_embedder()).replace(SPLITTER, TaggedSplitter())
    graph = open_graph(tmp_path, roles, window=16_000)
    record(graph, CONFIG, *said("roses", range(4)), *said("lisbon", range(4)))
    tell(graph, CONFIG, "lisbon: Which trams go to the river hotel?", keep=0)
    tell(graph, CONFIG, "The roses again: how do I get rid of the greenfly by the hedge?")
    back = last_receipt(tmp_path, graph, CONFIG).events
    tell(graph, CONFIG, "Explain the proof that the square root of two is irrational, please.")
    new = last_receipt(tmp_path, graph, CONFIG).events
    assert [e[:14] for e in back if e.startswith("returns")] == ["returns to t1 "]
    assert not [e for e in new if e.startswith("returns")]
