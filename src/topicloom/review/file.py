"""file: the messages of archived topics go to the archive, those of revived ones come back.

It comes after the turn that archived them, and looks at all topics: what a crash left undone in
between is done by the next review.
"""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.errors import StorageError
from topicloom.nodes.step import Update, dumped, node
from topicloom.review.archive_index import ArchiveIndexer, build_topic_documents
from topicloom.review.channels import ReviewState
from topicloom.review.session_client import ReviewDeps
from topicloom.roles.calls import ask_role
from topicloom.state.receipt import Call
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore


def move_archived(desk: ReviewDeps) -> Runnable[ReviewState, Update]:
    """The node that puts messages where they belong; what is damaged stays and is told."""

    def step(state: ReviewState) -> Step[Update]:
        sight = yield from desk.door.look(state["thread"])
        store = desk.store(sight.session.id)
        filed: list[str] = []
        troubles: list[str] = []
        for topic in store.topic_table(sight.session):
            try:
                filed += _move_topic(store, topic)
            except StorageError as error:
                troubles.append(f"{topic.id} stays where it is: {error}")
        return {"filed": filed, "troubles": [*troubles, *store.new_reports()]}

    return node(step, "file")


def _move_topic(store: SessionStore, topic: Topic) -> list[str]:
    """The topic's id, if its messages had to move."""
    if topic.status not in ("archived", "open") or topic.head is None:
        return []
    card = store.archived(topic)
    if topic.status == "open":
        if card is None:
            return []
        store.restore(topic)
        return [topic.id]
    if card is not None and card.month == topic.archived and topic.head in card.refs:
        return []
    store.archive(topic, topic.archived)
    return [topic.id]


_PATIENCE = 3
"""Failures in a row after which the rest waits for the next review."""


def index_archived(desk: ReviewDeps, keeper: ArchiveIndexer) -> Runnable[ReviewState, Update]:
    """The node that brings the store up to date; what it fails to do is told."""

    def step(state: ReviewState) -> Step[Update]:
        sight = yield from desk.door.look(state["thread"])
        session = sight.session
        store = desk.store(session.id)
        calls: list[Call] = []
        troubles: list[str] = []
        failures = 0
        for topic in (t for t in store.topic_table(session) if t.archived):
            try:
                shelf = build_topic_documents(store, session.id, topic)
            except StorageError as error:
                troubles.append(f"{topic.id} was not handed over: {error}")
                continue
            done, call = yield from ask_role("router", keeper, shelf, topic.id)
            if done is None or done.relevance:
                calls.append(call)
            failures = failures + 1 if done is None else 0
            if done is None:
                troubles.append(f"{topic.id} was not handed over to {call.model}: {call.failure}")
            if failures == _PATIENCE:
                break
        return {"calls": dumped(calls), "troubles": troubles}

    return node(step, "hand_over")
