"""Changes of topics, made over a session's chains: activated, merged, rounds moved between them."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence

from topicloom.state.activation import (
    INITIAL_RELEVANCE,
    ActivationChange,
    ActivationPolicy,
    activate_candidates,
    transfer_activation,
)
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
from topicloom.state.lifecycle import apply_event, mark_active, merge_topic_rows
from topicloom.state.rounds import group_rounds
from topicloom.state.session import Session, Turn
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.sessions import SessionStore


def activate_topics(
    store: SessionStore,
    session: Session,
    relevance: Mapping[str, float],
    policy: ActivationPolicy,
    *,
    asked: Container[str] = (),
) -> tuple[Session, ActivationChange]:
    """Activate topics by rank, as far as there is room; others may be deactivated for it.

    Nothing but being `asked` for revives archived topics. Raises `TransitionError` if a topic
    cannot be activated.
    """
    table = store.topic_table(session)
    change = activate_candidates(session.active, relevance, policy, table.pinned())
    rows = [mark_active(table[t], session.active, asked=t in asked) for t in change.activated]
    session = store.save_topics(session, [row for row in rows if row != table[row.id]])
    return session.model_copy(update={"active": change.active}), change


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


def merge_topics(
    store: SessionStore, session: Session, survivor: Topic, other: Topic
) -> tuple[Session, Topic]:
    """Merge a topic into another, which takes its place in the session; both rows are written.

    Raises:
        TransitionError: If they may not be merged.
    """
    kept, gone = merge_topic_rows(survivor, other, session.active)
    references = store.ranges(session).references(other.id)
    session = store.hand_over(session, other, survivor)
    session = store.refer(session, survivor, references)
    kept = store.recount(session, kept)
    session = store.save_topics(session, [gone, kept])
    active = transfer_activation(session.active, other.id, [survivor.id])
    return session.model_copy(update={"active": active}), kept


def take_rounds(
    store: SessionStore, session: Session, topic: Topic, numbers: Collection[int]
) -> tuple[Session, Topic]:
    """Move the rounds that some messages belong to from other topics into a topic.

    A topic that has nothing left counts as merged into it.

    Returns:
        The session, with the rows of the other topics, and the row of the topic, which is not
        written yet.
    """
    table = store.topic_table(session)
    for other, own in store.ranges(session).group(numbers).items():
        if other != topic.id:
            session, topic = _take(store, session, topic, table[other], set(own))
    return session, topic


def _take(
    store: SessionStore, session: Session, topic: Topic, other: Topic, numbers: Collection[int]
) -> tuple[Session, Topic]:
    rounds = group_rounds(store.topic_messages(session, other))
    taken = [r for r in rounds if not {m.seq for m in r.messages}.isdisjoint(numbers)]
    if not taken:  # what is out of view stays where it is
        return session, topic
    moved = [m for r in taken for m in r.messages]
    # By their share of the characters: nobody is there who counts tokens.
    sizes = [sum(len(m.text) for r in some for m in r.messages) for some in (taken, rounds)]
    tokens = other.tokens * sizes[0] // max(1, sizes[1])
    topic = topic.model_copy(update={"tokens": topic.tokens + tokens, "room": 0})
    active, was_empty = session.active, not topic.count
    session, topic = store.assign(session, topic, moved)
    if len(taken) == len(rounds):
        session = store.hand_over(session, other, topic)
        rest = apply_event(other, "merge", active).emptied()
        rest = rest.model_copy(update={"merged_into": topic.id})
        active = transfer_activation(active, other.id, [topic.id])
    else:
        left = other.model_copy(update={"tokens": other.tokens - tokens})
        rest = store.recount(session, left)
        if other.id in active and was_empty:
            active = {**active, topic.id: active[other.id]}
    session = store.save_topics(session, [rest])
    return session.model_copy(update={"active": active}), topic
