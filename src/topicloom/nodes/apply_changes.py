"""apply_changes: make the changes to topics that a review passed in, as far as they still fit."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.runnables import Runnable

from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update, dump, node, open_turn, turn_options
from topicloom.state.changes import (
    TopicChange,
    apply_archiving,
    apply_texts,
    describe_change,
    explain_refusal,
)
from topicloom.state.channels import SessionState
from topicloom.state.session import Session, Turn
from topicloom.state.topics import TopicTable
from topicloom.storage.references import merge_topics
from topicloom.storage.sessions import SessionStore


def apply_changes(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that makes the changes that came with the turn."""

    def step(state: SessionState) -> Update:
        session, turn, workspace = open_turn(deps.workspaces, state)
        return dump(*make_changes(workspace.store, session, turn, turn_options().changes))

    return node(step, "apply_changes")


def make_changes(
    store: SessionStore, session: Session, turn: Turn, changes: Sequence[TopicChange]
) -> tuple[Session, Turn]:
    """Make changes one after another, and say in the turn what became of each."""
    for change in map(TopicChange.model_validate, changes):
        table = store.topic_table(session)
        why = explain_refusal(change, table, session.active)
        if why:
            event = f"left {change.topic} as it is: {why}"
            refused = {**turn.refused, change.topic: why}
            turn = turn.model_copy(update={"refused": refused, "events": (*turn.events, event)})
            continue
        event = describe_change(change, table)
        changed = (*turn.changed, change.topic)
        turn = turn.model_copy(update={"changed": changed, "events": (*turn.events, event)})
        session = _make_change(store, session, change, table)
    return session, turn


def _make_change(
    store: SessionStore, session: Session, change: TopicChange, table: TopicTable
) -> Session:
    topic = table[change.topic]
    if change.absorbs is not None:
        session, topic = merge_topics(store, session, topic, table[change.absorbs])
    topic = apply_archiving(apply_texts(topic, change, table), change, session.active)
    return store.save_topics(session, [topic])
