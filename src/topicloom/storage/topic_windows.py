"""The messages that readers of topics are shown, over a session's chains."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter

from topicloom.state.lifecycle import merge_in_order
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
