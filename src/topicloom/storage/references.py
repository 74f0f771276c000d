"""References and moves between topics, over a session's chains.

A topic's references have a chain of their own, `references/topic-<id>`, with rows
`{"first": 41, "last": 44, "home": "t2"}`; its newest entry stands in the topic's row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from topicloom.state.activation import transfer_activation
from topicloom.state.lifecycle import apply_event, merge_in_order, merge_topic_rows
from topicloom.state.references import Reference, select_newest
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore


def add_references(store: SessionStore, topic: Topic, references: Sequence[Reference]) -> Topic:
    """Append references to a topic's; returns the topic with its new head."""
    rows = [r.model_dump(mode="json") for r in references]
    head = store.log.append(topic.references, topic.borrowed, rows)
    return topic.model_copy(update={"borrowed": head})


def read_references(store: SessionStore, topic: Topic) -> list[Reference]:
    """A topic's references, in the order in which they came."""
    refs = store.log.refs(topic.references, topic.borrowed)
    return [Reference.model_validate(row) for row in store.log.read(topic.references, refs)]


def read_topic_window(
    store: SessionStore, session: Session, topic: Topic, size: Callable[[Round], int], room: int
) -> list[StoredMessage]:
    """The messages that a topic's reader is shown: its own, and the newest it refers to.

    Its own come first: of the others, those are shown that fit what is left of the room, in tokens.
    """
    own, borrowed = store.topic_messages(topic), list[StoredMessage]()
    references = select_newest(read_references(store, topic))
    left = room - sum(map(size, group_rounds(own if references else ())))
    for reference in reversed(references):
        said = store.messages(session, reference.first, reference.last)
        left -= sum(map(size, group_rounds(said)))
        borrowed += said if left >= 0 else ()
    # Both kinds come from the part of the conversation that is split, which is newer than all that
    # was split before: in the order of the conversation, whatever comes, comes at the end.
    return merge_in_order(borrowed, own)


def merge_topics(
    store: SessionStore, session: Session, survivor: Topic, other: Topic
) -> tuple[Session, Topic]:
    """Merge a topic into another, which takes its place in the session; both rows are written.

    The survivor's chain is written anew in the order of the conversation. What comes before the
    first message of the other topic is shared with the old chain and not written again.

    Raises:
        TransitionError: If they may not be merged.
    """
    moved = group_rounds(store.topic_messages(other))
    messages = merge_in_order(store.topic_messages(survivor), store.topic_messages(other))
    kept, gone = merge_topic_rows(survivor, other, session.active)
    kept = store.refill(kept, messages)
    kept = add_references(store, kept, read_references(store, other))
    session = store.add_days(session, kept, moved)
    session = store.save_topics(session, [gone, kept])
    owner = survivor.id if session.home == other.id else session.home
    active = transfer_activation(session.active, other.id, [survivor.id])
    return session.model_copy(update={"active": active, "home": owner}), kept


def take_rounds(
    store: SessionStore, session: Session, topic: Topic, numbers: Collection[int]
) -> tuple[Session, Topic]:
    """Move the rounds that some messages belong to from other topics into a topic.

    A topic that has nothing left counts as merged into it.

    Returns:
        The session, with the rows of the other topics, and the row of the topic, which is not
        written yet.
    """
    held = {
        other: group_rounds(store.topic_messages(other))
        for other in store.topic_table(session)
        if other.head is not None and other.id != topic.id
    }
    for other, rounds in held.items():
        taken = [r for r in rounds if not {m.seq for m in r.messages}.isdisjoint(numbers)]
        if taken:
            left = [m for r in rounds if r not in taken for m in r.messages]
            session, topic = _take(store, session, topic, other, taken, left)
    return session, topic


def _take(
    store: SessionStore,
    session: Session,
    topic: Topic,
    other: Topic,
    taken: Sequence[Round],
    left: Sequence[StoredMessage],
) -> tuple[Session, Topic]:
    moved = [m for r in taken for m in r.messages]
    # By their share of the characters: nobody is there who counts tokens.
    sizes = [sum(len(m.text) for m in some) for some in (moved, left)]
    tokens = other.tokens * sizes[0] // max(1, sum(sizes))
    session = store.add_days(session, topic, taken)
    session = store.drop_days(session, other, {m.day for m in moved} - {m.day for m in left})
    rest = store.refill(other, left).model_copy(update={"tokens": other.tokens - tokens})
    active = session.active
    if not left:
        rest = apply_event(rest, "merge", active).emptied()
        rest = rest.model_copy(update={"merged_into": topic.id})
        active = transfer_activation(active, other.id, [topic.id])
    elif other.id in active and topic.head is None:
        active = {**active, topic.id: active[other.id]}
    owner = topic.id if session.tail - 1 in {m.seq for m in moved} else session.home
    session = store.save_topics(session, [rest])
    room = topic.room if topic.room == other.room else 0
    filled = topic.model_copy(update={"tokens": topic.tokens + tokens, "room": room})
    messages = merge_in_order(store.topic_messages(topic), moved)
    update = {"active": active, "home": owner}
    return session.model_copy(update=update), store.refill(filled, messages)
