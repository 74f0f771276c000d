"""References and moves between topics, over a session's chains."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from operator import attrgetter

from topicloom.state.activation import (
    ActivationChange,
    ActivationPolicy,
    activate_candidates,
    transfer_activation,
)
from topicloom.state.lifecycle import apply_event, mark_active, merge_in_order, merge_topic_rows
from topicloom.state.recall import parse_message_number
from topicloom.state.references import select_newest
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore


def read_topic_window(
    store: SessionStore, session: Session, topic: Topic, size: Callable[[Round], int], room: int
) -> list[StoredMessage]:
    """The messages that a topic's reader is shown: its own, and the newest it refers to.

    Its own come first: of the others, those are shown that fit what is left of the room, in tokens.
    """
    own, others = store.topic_messages(session, topic), list[StoredMessage]()
    references = select_newest(store.ranges(session).references(topic.id))
    left = room - sum(map(size, group_rounds(own if references else ())))
    for first, last in reversed(references):
        said = store.messages(session, first, last)
        left -= sum(map(size, group_rounds(said)))
        others += said if left >= 0 else ()
    # Both kinds come from the part of the conversation that is split, which is newer than all that
    # was split before: in the order of the conversation, whatever comes, comes at the end.
    return merge_in_order(others, own)


def pick_fitting(
    store: SessionStore,
    session: Session,
    ids: Iterable[str],
    count: Callable[[str], int],
    room: int,
) -> list[StoredMessage]:
    """The messages of some short ids, the best first, that fit in tokens; in their own order."""
    numbers = list(map(parse_message_number, ids))
    originals, shown = store.pick(session, numbers), list[StoredMessage]()
    for message in (originals[n] for n in numbers if n in originals):
        price = count(message.line)
        if price <= room:
            room -= price
            shown.append(message)
    return sorted(shown, key=attrgetter("seq"))


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
    room = topic.room if topic.room == other.room else 0
    topic = topic.model_copy(update={"tokens": topic.tokens + tokens, "room": room})
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
