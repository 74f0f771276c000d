"""A turn searches with the rounds that it goes on with: they say which topics it is in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from sessions import open_graph, record, tell, thread

from topicloom.index.encoders import default_embedder
from topicloom.index.session_index import SessionIndex
from topicloom.index.turn_topics import TurnContext
from topicloom.roles.choice import embedded_roles
from topicloom.roles.splitter import SPLITTER
from topicloom.testing import TaggedSplitter

CONFIG = thread()
SUBJECTS = {
    "roses": "Roses, number {n}: the bed by the hedge, the pruning, the feed and the greenfly.",
    "lisbon": "Lisbon, number {n}: the flights in May, the river hotel, the trams and the tiles.",
}
NEXT = "Thanks! And which part of it comes after that one?"


def said(subject: str, numbers: range) -> list[BaseMessage]:
    lines = [f"{subject}: {SUBJECTS[subject].format(n=n)}" for n in numbers]
    return [m for line in lines for m in (HumanMessage(line), AIMessage(f"{subject}: Noted."))]


def test_a_turn_searches_with_what_it_goes_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = list[TurnContext]()
    search = SessionIndex.search

    def watch(self: SessionIndex, *args: Any, **kwargs: Any) -> Any:
        contexts.append(kwargs.get("context", TurnContext()))
        return search(self, *args, **kwargs)

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
