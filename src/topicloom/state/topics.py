"""Topics as the roster lists them, and the roster itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Status = Literal["open", "archived", "divided", "merged"]
"""`open` topics are active or dormant: which of the two is the session's to say."""


class Topic(BaseModel):
    """One topic of the conversation. Its messages stand in the chain `topics/topic-<id>`."""

    model_config = ConfigDict(frozen=True)

    id: str
    """Short id, `t7`."""
    name: str
    """A few words."""
    brief: str = ""
    """About 1 KB that tell whether a new message belongs here (spec 000, 4.6)."""
    head: str | None = None
    """Newest entry of the topic's chain."""
    count: int = 0
    """Messages in it."""
    tokens: int = 0
    """Estimated tokens of its messages."""
    first_at: str = ""
    """Time of its oldest message, ISO 8601."""
    last_at: str = ""
    """Time of its newest message, ISO 8601."""
    status: Status = "open"
    """Where it is in its life, but for active and dormant."""
    parent: str | None = None
    """The topic that it continues or is a part of."""
    related: tuple[str, ...] = ()
    """Topics that were quoted for messages of this one."""

    @property
    def chain(self) -> str:
        """Name of the chain of its messages."""
        return f"topics/topic-{self.id}"


@dataclass(frozen=True, slots=True)
class Roster:
    """All topics of a session at one checkpoint, in the order of their creation."""

    topics: Mapping[str, Topic]
    """Topics by id."""

    @classmethod
    def fold(cls, rows: Iterable[Mapping[str, Any]], base: Roster | None = None) -> Roster:
        """The roster after some rows; the last row of a topic wins."""
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
        """Topics that may be active or dormant."""
        return [t for t in self if t.status == "open"]

    def archived(self) -> list[Topic]:
        """Topics that only an explicit request may find."""
        return [t for t in self if t.status == "archived"]
