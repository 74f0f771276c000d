"""apply_changes: make changes to topics, of a review or a person, as far as they still fit.

Repairs are worked out here, in the turn: nothing can come between.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.runnables import Runnable

from topicloom.nodes.deps import Deps
from topicloom.nodes.regrouping import find_regroupings_of_review
from topicloom.nodes.step import Node, Update, dump, open_turn, turn_options
from topicloom.state.activation import INITIAL_RELEVANCE
from topicloom.state.changes import (
    REVIEW,
    ChangeEntry,
    TopicChange,
    apply_archiving,
    apply_texts,
    begin_brief,
    describe_change,
    explain_refusal,
)
from topicloom.state.channels import SessionState
from topicloom.state.session import Session, Turn
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.sessions import SessionStore
from topicloom.storage.topic_moves import merge_topics, take_rounds


def apply_changes(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that makes the changes that came with the turn."""

    def step(state: SessionState) -> Update:
        session, turn, workspace = open_turn(deps.workspaces, state)
        options = turn_options()
        changes = list(options.changes)
        if options.regroup:
            changes += find_regroupings_of_review(deps, workspace, session)
        return dump(*make_changes(workspace.store, session, turn, changes))

    return Node(step, "apply_changes")


def make_changes(
    store: SessionStore, session: Session, turn: Turn, changes: Sequence[TopicChange]
) -> tuple[Session, Turn]:
    """Make changes one after another, and say in the turn and the journal what became of each."""
    for change in map(TopicChange.model_validate, changes):
        table = store.topic_table(session)
        why = explain_refusal(change, table, session.active, session.tail)
        if why:
            event = f"left {change.topic} as it is: {why}"
            refused = {**turn.refused, change.topic: why}
            turn = turn.model_copy(update={"refused": refused, "events": (*turn.events, event)})
            continue
        if not change.topic:
            number = session.topics + 1
            session = session.model_copy(update={"topics": number})
            change = change.model_copy(update={"topic": f"t{number}"})
        made = _make_change(store, session, change, table)
        if change.author != REVIEW and store.topic_table(made).topics == table.topics:
            refused = {**turn.refused, change.topic: "nothing would change"}
            turn = turn.model_copy(update={"refused": refused})
            continue
        event = describe_change(change, table)
        changed = (*turn.changed, change.topic)
        turn = turn.model_copy(update={"changed": changed, "events": (*turn.events, event)})
        entry = ChangeEntry(
            author=change.author,
            time=turn.started,
            event=event,
            before=(session.roster, session.ranges),
            after=(made.roster, made.ranges),
            undoes=change.undoes,
        )
        session = store.add_change(made, entry)
    return session, turn


def _make_change(
    store: SessionStore, session: Session, change: TopicChange, table: TopicTable
) -> Session:
    topic = table.get(change.topic) or Topic(id=change.topic, name=change.name)
    if change.absorbs is not None:
        session, topic = merge_topics(store, session, topic, table[change.absorbs])
    if change.takes:
        session, topic = take_rounds(store, session, topic, change.takes)
    active = dict(session.active)
    if change.marks.get("pinned"):
        active.setdefault(topic.id, (INITIAL_RELEVANCE,))
    if change.archive and change.author != REVIEW:
        active.pop(topic.id, None)
    topic = apply_archiving(apply_texts(topic, change, table), change, active)
    if not topic.brief and topic.id not in table:
        topic = topic.model_copy(
            update={"brief": begin_brief(store.topic_messages(session, topic))}
        )
    session = session.model_copy(update={"active": active})
    return store.save_topics(session, [topic])
