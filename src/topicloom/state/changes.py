"""Changes to topics that were worked out beside the graph, until a turn of the graph makes them.

Only the graph writes the roster: a second writer could undo a turn. So a review leaves its
findings as changes. Each says how the topics looked that it was worked out from, and one that
does not fit any more is passed over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container

from pydantic import BaseModel, ConfigDict

from topicloom.state.lifecycle import get_state, mark_archived
from topicloom.state.topics import Topic, TopicTable

_SEEN = {
    "head",
    "borrowed",
    "name",
    "brief",
    "summary",
    "importance",
    "once",
    "reviewed",
    "status",
}


class TopicChange(BaseModel):
    """What a review makes of a topic."""

    model_config = ConfigDict(frozen=True)

    topic: str
    """Id of the topic."""
    seen: str
    """Stands for the topic as it was."""
    name: str
    """Its new name."""
    brief: str
    """Its new brief."""
    summary: str
    """Its new summary."""
    importance: float | None
    """How much it matters, 0 to 1; None if nobody said."""
    once: bool = False
    """Whether it was asked once and is over."""
    reviewed: bool = True
    """Whether all of the above was drawn from the topic's messages now, not taken over."""
    absorbs: str | None = None
    """Id of the topic that is merged into it."""
    absorbed_seen: str = ""
    """Stands for that topic as it was."""
    archive: str = ""
    """Month of the archive that it goes to, with what is merged into it, `2026-03`; empty if it
    stays."""
    reason: str = ""
    """Why it is merged or archived, or both."""


def fingerprint_topic(topic: Topic) -> str:
    """Stands for what a review saw of a topic: another one for everything that may change."""
    text = topic.model_dump_json(include=_SEEN)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def explain_refusal(change: TopicChange, table: TopicTable, active: Container[str]) -> str:
    """Why a change cannot be made; empty if it can.

    Args:
        change: The change.
        table: The topics as they are now.
        active: Ids of the active topics.
    """
    marks = {change.topic: change.seen}
    if change.absorbs is not None:
        marks[change.absorbs] = change.absorbed_seen
    for topic_id, seen in marks.items():
        topic = table.get(topic_id)
        if topic is None:
            return f"there is no {topic_id}"
        if fingerprint_topic(topic) != seen:
            return f"{topic_id} has changed since"
        if topic.status != "open":
            return f"{topic_id} is {topic.status}"
    if len(marks) < 2 and change.absorbs is not None:
        return f"{change.topic} cannot be merged into itself"
    awake = [i for i in marks if get_state(table[i], active) != "dormant"]
    return f"{awake[0]} is awake" if change.archive and awake else ""


def apply_texts(topic: Topic, change: TopicChange, table: TopicTable) -> Topic:
    """The topic with what a change says of it, a name that another one has excepted.

    Args:
        topic: With all messages that it is going to have.
        change: The change.
        table: The topics beside it.
    """
    others = {t.name for t in table if t.id not in (topic.id, change.absorbs)}
    return topic.model_copy(
        update={
            "name": change.name if change.name and change.name not in others else topic.name,
            "brief": change.brief,
            "summary": change.summary,
            "importance": change.importance,
            "once": change.once,
            "reviewed": topic.head if change.reviewed else topic.reviewed,
        }
    )


def apply_archiving(topic: Topic, change: TopicChange, active: Container[str]) -> Topic:
    """The topic archived, if the change says so.

    Raises:
        TransitionError: If it is not dormant.
    """
    return mark_archived(topic, active, change.archive) if change.archive else topic


def describe_change(change: TopicChange, table: TopicTable) -> str:
    """What a change does to a topic, in words for people.

    Args:
        change: The change.
        table: The topics as they were before it.
    """
    named = f"{change.topic} “{_get_name(change.topic, table)}”"
    if change.absorbs is not None:
        other = f"{change.absorbs} “{_get_name(change.absorbs, table)}”"
        away = " and archived it" if change.archive else ""
        return f"merged {other} into {named}{away}: {change.reason}"
    if change.archive:
        return f"archived {named}: {change.reason}"
    return f"reviewed {named}"


def _get_name(topic_id: str, table: TopicTable) -> str:
    topic = table.get(topic_id)
    return topic.name if topic else ""
