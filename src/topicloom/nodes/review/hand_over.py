"""hand_over: a vector store gets what is archived, and loses what is archived no more.

It looks at all topics that ever were archived: what a crash or a store out of order left undone is
done by the next review.
"""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.errors import StorageError
from topicloom.export.archive_index import ArchiveKeeper
from topicloom.export.documents import shelf_of
from topicloom.nodes.review.desk import ReviewDesk
from topicloom.nodes.step import Update, dumped, node
from topicloom.roles.calls import ask
from topicloom.state.receipt import Call
from topicloom.state.review_channels import ReviewState

_PATIENCE = 3
"""Failures in a row after which the rest waits for the next review."""


def hand_over(desk: ReviewDesk, keeper: ArchiveKeeper) -> Runnable[ReviewState, Update]:
    """The node that brings the store up to date; what it fails to do is told."""

    def step(state: ReviewState) -> Step[Update]:
        sight = yield from desk.door.look(state["thread"])
        session = sight.session
        store = desk.store(session.id)
        calls: list[Call] = []
        troubles: list[str] = []
        failures = 0
        for topic in (t for t in store.roster(session) if t.archived):
            try:
                shelf = shelf_of(store, session.id, topic)
            except StorageError as error:
                troubles.append(f"{topic.id} was not handed over: {error}")
                continue
            done, call = yield from ask("router", keeper, shelf, topic.id)
            if done is None or done.relevance:
                calls.append(call)
            failures = failures + 1 if done is None else 0
            if done is None:
                troubles.append(f"{topic.id} was not handed over to {call.model}: {call.failure}")
            if failures == _PATIENCE:
                break
        return {"calls": dumped(calls), "troubles": troubles}

    return node(step, "hand_over")
