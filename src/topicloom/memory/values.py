"""Values of `Memory`: topics, messages and changes that it gives, names and ids that it takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from pydantic import BaseModel, PrivateAttr

from topicloom.effects import Step, both
from topicloom.errors import InputError
from topicloom.prompts.wording import find_own_quotes
from topicloom.reflection.facts import Fact
from topicloom.state.changes import REVIEW
from topicloom.state.hierarchy import build_full_name
from topicloom.state.lifecycle import TopicState, get_state
from topicloom.state.recall import find_number
from topicloom.state.safe_text import clip
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Mark, Topic, TopicTable
from topicloom.storage.sessions import SessionStore
from topicloom.texts import FilledText

_NAME = 80
"""Characters of a topic's name."""
_TO = re.compile(r"(?:(?<!\s)\s++)?[-–—~]\s*+")
_BETWEEN = re.compile(r"[\s,;、，；]+")


class MemoryTopic(BaseModel, frozen=True):
    """One topic of a session, as it was when it was asked for."""

    id: str
    """Short id, `t7`."""
    name: str
    full_name: str
    """Its name behind those of the topics that it is a part of: `House / Kitchen`."""
    state: TopicState
    brief: str
    """The text by which it is recognised, about 1 KB."""
    summary: str
    """A summary by the last review; "" before the first."""
    count: int
    """Messages in it."""
    first_at: str
    """Time of its oldest message, ISO 8601; "" if it has none."""
    last_at: str
    """Time of its newest message, likewise."""
    parent: str | None
    """The topic that it is a part of."""
    importance: float | None
    """0 to 1, by the last review; None before the first."""
    by_hand: tuple[Mark, ...]
    """Decisions of a person, which no review or split changes back."""
    loose: bool
    """True for loose ends: small talk and single questions that belong to no topic."""
    _kept: tuple[SessionStore, Session, Topic] = PrivateAttr()

    def _messages(self) -> Step[list[StoredMessage]]:
        """Its messages in order, word for word."""
        yield from ()
        store, session, topic = self._kept
        store.renew()  # it may have been purged since
        return list(store.topic_messages(session, topic))

    messages, amessages = both(_messages)


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that a search found."""

    message: StoredMessage
    topic: str
    """Id of the topic that has it; "" if none has it yet."""
    relevance: float
    """0 to 1, by its place among what was found."""
    fits: bool = True
    """False if nothing fits the text: then it is only the closest in meaning."""


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A change that was made to topics."""

    id: str
    author: str
    """`review`, or the person."""
    time: str
    """ISO 8601."""
    event: str
    """What was done, in words."""
    undone: bool
    undoes: str
    """Id of the change that it undid; "" if it is none of these."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Messages and facts that were removed for good, or would be."""

    messages: tuple[StoredMessage, ...]
    """The messages, as they were said, and what was said in their places on other branches."""
    topics: tuple[str, ...]
    """Topics that held any of them, and parts that have their names from these: their names,
    briefs and summaries go too."""
    facts: dict[str, Fact]
    """Facts that rest on them, by key."""
    left: tuple[str, ...] = ()
    """Where it may still be found, a sentence each."""


def show_topic(
    topic: Topic, table: TopicTable, session: Session, store: SessionStore
) -> MemoryTopic:
    shown = MemoryTopic(
        **topic.model_dump(include=set(MemoryTopic.model_fields)),
        full_name=build_full_name(topic, table.topics),
        state=get_state(topic, session.active),
    )
    shown._kept = store, session, topic
    return shown


def find_numbers(session: Session, store: SessionStore, what: Sequence[str]) -> list[int]:
    """Numbers of the messages that are named, by their ids or by topics.

    Replies that no model wrote and that quote any of them are among them.
    """
    table, numbers = store.topic_table(session), set[int]()
    for name in what:
        if find_number(name, "t") is None:
            numbers |= set(read_numbers(session, name))
            continue
        topic = get_topic(table, name, session)
        numbers |= store.find_named(session, topic)
    if not numbers:
        raise InputError("nothing to remove: name a topic that holds messages, or messages")
    said = store.messages(session)
    gone = [" ".join(message.text.split()) for message in said if message.seq in numbers]
    quoting = (m.seq for m in said for q in find_own_quotes(m.text) if any(q in t for t in gone))
    return sorted(numbers.union(quoting))


def read_numbers(session: Session, messages: str | Iterable[str]) -> tuple[int, ...]:
    """Numbers of the messages that a text or a list names, by ids and ranges, or InputError.

    All of it has to be that, as what is named may be removed: `m12-m15, m20`, `m12-15`.
    """
    found = set[int]()
    for text in [messages] if isinstance(messages, str) else messages:
        for named in _BETWEEN.split(_TO.sub("-", text).strip(" ,")):
            begin, _, end = named.partition("-")
            first = read_number(begin, session)
            last = read_number(f"m{end.removeprefix('m')}", session) if end else first
            if last < first:
                raise InputError(
                    "{range!r} ends before it begins: write m{first}-m{last}",
                    range=named,
                    first=last,
                    last=first,
                )
            found.update(range(first, last + 1))
    return tuple(sorted(found))


def check_name(name: str) -> str:
    """A topic's name on one line, cut to its length, or InputError if it is empty."""
    name = clip(" ".join(name.split()), _NAME)
    if not name:
        raise InputError("a topic needs a name")
    return name


def check_author(author: str) -> str:
    """The name of who changes a session, or InputError if it is empty or that of reviews."""
    if author in ("", REVIEW):
        raise InputError("{author!r} cannot be used as an author: give another name", author=author)
    return author


def check_count(count: object, name: str = "limit", least: int = 1) -> int | None:
    """A number of things as it was given, None for all; raises InputError for any other value."""
    if count is None or (isinstance(count, int) and count >= least):
        return count
    raise InputError(
        "{name}={count!r} cannot be used: give a whole number, {least} or more",
        name=name,
        count=count,
        least=least,
    )


def get_topic(table: TopicTable, topic_id: str, session: Session) -> Topic:
    """The topic of that id, or InputError."""
    topic = table.get(topic_id)
    if topic is None:
        raise InputError(
            "session {session!r} has no topic {topic!r} (there: {known})",
            session=session.id,
            topic=topic_id,
            known=_name_ids("t", session.topics),
        )
    return topic


def read_number(message_id: str, session: Session) -> int:
    """The number in a message's short id, or InputError if there is no such message."""
    number = find_number(message_id, "m") or 0
    if not 1 <= number <= session.count:
        raise InputError(
            "session {session!r} has no message {message!r} (there: {known})",
            session=session.id,
            message=message_id,
            known=_name_ids("m", session.count),
        )
    return number


def _name_ids(letter: str, count: int) -> str:
    """The short ids that there are, in words."""
    if not count:
        return FilledText("none yet")
    return FilledText("{first} to {last}", first=f"{letter}1", last=f"{letter}{count}")


def read_day(day: str | date | None, otherwise: date) -> date:
    """The day that an ISO 8601 text begins with, or InputError."""
    try:
        return date.fromisoformat(str(day)[:10]) if day else otherwise
    except ValueError as error:
        raise InputError("{day!r} is not a day: write it as 2026-03-02", day=day) from error
