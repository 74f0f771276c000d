"""Topics, and the table of a session's topics."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from topicloom.state.stored_message import StoredMessage

TopicStatus = Literal["open", "archived", "divided", "merged"]
"""`open` topics are active or dormant: which of the two is the session's to say."""


Mark = Literal["named", "sorted", "pinned", "restored"]
"""What a person did to a topic, and no review or split undoes: gave it its name, put messages into
it, pinned it, took it out of the archive."""


class Topic(BaseModel, frozen=True, extra="allow"):
    """One topic of the conversation. Which messages it has, `TopicRanges` says."""

    id: str
    """Short id, `t7`."""
    name: str
    """A few words."""
    brief: str = ""
    """About 1 KB that tell whether a new message belongs here."""
    content: str = ""
    """Digest of which messages it has, on which branch, and how they were edited; "" for none."""
    count: int = 0
    """Messages in it that are in view."""
    tokens: int = 0
    """Tokens of its messages, as its reader is shown them."""
    room: int = 0
    """The most that `tokens` could come to when they were counted. The next split counts them anew
    for another reader, whose room is another, and where this is 0: after a merge or a move."""
    first_at: str = ""
    """Time of its oldest message, ISO 8601."""
    last_at: str = ""
    """Time of its newest message, ISO 8601."""
    newest: int = 0
    """Number of its newest message; 0 if it has none. Unlike times, it never goes backwards."""
    status: TopicStatus = "open"
    """Its state, but for active and dormant."""
    parent: str | None = None
    """The topic that it is a part of."""
    merged_into: str | None = None
    """The topic that its messages went to, once it is merged."""
    summary: str = ""
    """What a review made of it; stands for an archived topic."""
    importance: float | None = None
    """Importance by the last review, 0 to 1; None before the first."""
    once: bool = False
    """True if the last review took it for something that was asked once and is over."""
    reviewed: str | None = None
    """Its `content` at the last review; None before the first."""
    archived: str = ""
    """Month that it was last archived in, `2026-03`."""
    loose: bool = False
    """True for loose ends: small talk and single questions, which make no topic. No reader reads
    it, and what gathers in it becomes a topic at a later split."""
    chat: str | None = None
    """The imported chat that it was opened for, by the id of the chat's first message."""
    titled: bool = False
    """True if its name is the title of that chat. Only a person gives it another."""
    by_hand: tuple[Mark, ...] = ()
    """What a person settled of it, in alphabetical order."""

    @property
    def days(self) -> str:
        """The day of its messages, or the first and the last one; "" if it has none."""
        return " .. ".join(dict.fromkeys(t[:10] for t in (self.first_at, self.last_at) if t))

    def described(self, name: str, brief: str) -> Topic:
        """The topic with a name and brief that a role wrote.

        A name that a person gave stays, and so does the title of an imported chat.
        """
        settled = self.titled or "named" in self.by_hand
        name = self.name if settled else name or self.name
        return self.model_copy(update={"name": name, "brief": brief})

    @property
    def label(self) -> str:
        """Id and name, as events of receipts have them."""
        return f"{self.id} “{self.name}”"

    def emptied(self) -> Topic:
        """The topic without messages."""
        figures = {"content": "", "count": 0, "tokens": 0, "newest": 0}
        return self.model_copy(update={**figures, "first_at": "", "last_at": ""})

    def gained(self, messages: Sequence[StoredMessage], tokens: int = 0) -> Topic:
        """The topic with the figures of messages more; its `content` is the caller's to say."""
        times = sorted(t for t in (self.first_at, self.last_at, *(m.time for m in messages)) if t)
        return self.model_copy(
            update={
                "count": self.count + len(messages),
                "tokens": self.tokens + tokens,
                "newest": max(self.newest, *(m.seq for m in messages), 0),
                "first_at": times[0] if times else "",
                "last_at": times[-1] if times else "",
            }
        )


@dataclass(frozen=True, slots=True)
class TopicTable:
    """All topics of a session at one checkpoint, in the order of their creation."""

    topics: Mapping[str, Topic]
    """Topics by id."""

    @classmethod
    def fold(cls, rows: Iterable[Mapping[str, Any]], base: TopicTable | None = None) -> TopicTable:
        """The table after some rows; the last row of a topic wins."""
        topics = dict(base.topics) if base else {}
        for row in rows:
            topic = Topic.model_validate(row)
            topics[topic.id] = topic
        return cls(topics)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.topics.values())

    def __len__(self) -> int:
        return len(self.topics)

    def __contains__(self, topic_id: object) -> bool:
        return topic_id in self.topics

    def __getitem__(self, topic_id: str) -> Topic:
        return self.topics[topic_id]

    def open(self) -> list[Topic]:
        """Topics that may be active or dormant; loose ends are neither."""
        return [t for t in self if t.status == "open" and not t.loose]

    def loose(self) -> list[Topic]:
        """The open topics of loose ends."""
        return [t for t in self if t.status == "open" and t.loose]

    def get(self, topic_id: str) -> Topic | None:
        """The topic of that id, if there is one."""
        return self.topics.get(topic_id)

    def pinned(self) -> frozenset[str]:
        """Ids of the topics that a person pinned."""
        return frozenset(t.id for t in self if "pinned" in t.by_hand)

    def archived(self) -> list[Topic]:
        """Topics that only an explicit request may find."""
        return [t for t in self if t.status == "archived"]


def select_shown(
    topics: Sequence[Topic], priors: Mapping[str, float], limit: int, always: Container[str] = ()
) -> list[Topic]:
    """The topics that a role is shown where there are too many for a prompt.

    Those that are `always` shown, past the limit if need be, and those that were last spoken of,
    half of the limit; then the nearest of the rest by the index (0 where it has none).
    """
    newest = sorted(topics, key=lambda t: t.last_at, reverse=True)
    newest.sort(key=lambda t: t.id not in always)
    kept = max(limit // 2, sum(t.id in always for t in topics))
    rest = sorted(newest[kept:], key=lambda t: -priors.get(t.id, 0.0))
    return newest[:kept] + rest[: max(0, limit - kept)]
