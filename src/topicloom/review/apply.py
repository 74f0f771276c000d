"""judge, apply and hand_over: decide the changes of a review, make them, hand over the archive.

The archive is looked at as a whole: what a crash left undone is done by the next review.
"""

from __future__ import annotations

from datetime import datetime

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.errors import StorageError
from topicloom.nodes.runs import name_thread
from topicloom.nodes.step import Update, dumped, node
from topicloom.review.archive_index import ArchiveIndexer, build_topic_documents
from topicloom.review.channels import ReviewState
from topicloom.review.decisions import (
    Assessment,
    ReviewFindings,
    TopicPair,
    TopicStats,
    decide_changes,
)
from topicloom.review.session_client import ReviewDeps
from topicloom.roles.calls import ask_role
from topicloom.state.changes import TopicChange, describe_change
from topicloom.state.receipt import Call
from topicloom.state.session import Session


def judge(deps: ReviewDeps) -> Runnable[ReviewState, Update]:
    """The node that decides the changes, without asking a role."""

    def step(state: ReviewState) -> Update:
        session = Session.model_validate(state["session"])
        store = deps.open_store(session)
        table = store.topic_table(session)
        found = ReviewFindings(
            looks=tuple(TopicStats.model_validate(row) for row in state["looks"]),
            assessed={r["topic"]: Assessment.model_validate(r) for r in state["assessed"]},
            pairs=tuple(TopicPair.model_validate(row) for row in state["pairs"]),
            near=state["near"],
        )
        changes = decide_changes(table, found, datetime.fromisoformat(state["now"]), deps.policy)
        return {
            "changes": [c.model_dump(mode="json") for c in changes],
            "told": [describe_change(c, table) for c in changes],
            "troubles": store.new_reports(),
        }

    return node(step, "judge")


def apply(deps: ReviewDeps) -> Runnable[ReviewState, Update]:
    """The node that changes the session; run again, it finds everything done."""

    def step(state: ReviewState) -> Step[Update]:
        changes = [TopicChange.model_validate(row) for row in state["changes"]]
        turn = yield from deps.client.apply_changes(name_thread(state["thread"]), changes)
        if turn is None:
            return {"refused": {c.topic: "a turn of the session is not finished" for c in changes}}
        return {"changed": list(turn.changed), "refused": dict(turn.refused)}

    return node(step, "apply")


_PATIENCE = 3
"""Failures in a row after which the rest waits for the next review."""


def index_archived(deps: ReviewDeps, indexer: ArchiveIndexer) -> Runnable[ReviewState, Update]:
    """The node that brings the vector store up to date; its failures are reported."""

    def step(state: ReviewState) -> Step[Update]:
        session, _ = yield from deps.client.read(name_thread(state["thread"]))
        store = deps.open_store(session)
        calls: list[Call] = []
        troubles: list[str] = []
        failures = 0
        topics = [t for t in store.topic_table(session) if t.archived]
        made = build_topic_documents(store, session, topics)
        for topic, documents in zip(topics, made, strict=True):
            if isinstance(documents, StorageError):
                troubles.append(f"{topic.id} was not handed over: {documents}")
                continue
            done, call = yield from ask_role("router", indexer, documents, topic.id)
            if done is None or done.relevance:
                calls.append(call)
            failures = failures + 1 if done is None else 0
            if done is None:
                troubles.append(f"{topic.id} was not handed over to {call.model}: {call.failure}")
            if failures == _PATIENCE:
                break
        return {"calls": dumped(calls), "troubles": troubles}

    return node(step, "hand_over")
