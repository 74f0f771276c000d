"""Changes to topics that were worked out beside the graph, until a turn of the graph makes them.

Only the graph writes the table of topics: a second writer could undo a turn. So a review leaves its
findings as changes, and a reflection its briefs as updates. Each has fingerprints of the topics
that it was worked out from, and one that does not fit any more is passed over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable

from pydantic import BaseModel

from topicloom.state.lifecycle import get_state, mark_archived
from topicloom.state.topics import Topic, TopicTable

_FINGERPRINT_FIELDS = set(
    "head borrowed name brief summary importance once reviewed status".split()
)


class TopicChange(BaseModel, frozen=True):
    """The change that a review makes to a topic."""

    topic: str
    """Id of the topic."""
    seen: str
    """Fingerprint of the topic as it was."""
    name: str
    brief: str
    summary: str
    importance: float | None
    """0 to 1; None if it was not judged."""
    once: bool = False
    """True if it was asked once and is over."""
    reviewed: bool = True
    """True if all of the above was drawn from the topic's messages now, not taken over."""
    absorbs: str | None = None
    """Id of the topic that is merged into it."""
    absorbed_seen: str = ""
    """Fingerprint of that topic as it was."""
    archive: str = ""
    """Month of the archive that it goes to, with what is merged into it, `2026-03`; empty if it
    stays."""
    reason: str = ""
    """Why it is merged or archived, or both."""


def fingerprint_topic(topic: Topic) -> str:
    """A digest of what a review saw of a topic: another one for everything that may change."""
    text = topic.model_dump_json(include=_FINGERPRINT_FIELDS)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def explain_refusal(change: TopicChange, table: TopicTable, active: Container[str]) -> str:
    """The reason why a change cannot be made to the topics as they are now; empty if it can."""
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
    not_dormant = [i for i in marks if get_state(table[i], active) != "dormant"]
    return f"{not_dormant[0]} is active" if change.archive and not_dormant else ""


def apply_texts(topic: Topic, change: TopicChange, table: TopicTable) -> Topic:
    """The topic, which has all its messages, with a change's texts but a name that is taken."""
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
    """The topic archived, if the change says so; raises `TransitionError` if it is not dormant."""
    return mark_archived(topic, active, change.archive) if change.archive else topic


def describe_change(change: TopicChange, table: TopicTable) -> str:
    """A change in words for people, given the topics as they were before it."""

    def name(topic_id: str) -> str:
        topic = table.get(topic_id)
        return f"{topic_id} “{topic.name if topic else ''}”"

    named = name(change.topic)
    if change.absorbs is not None:
        other = name(change.absorbs)
        away = " and archived it" if change.archive else ""
        return f"merged {other} into {named}{away}: {change.reason}"
    if change.archive:
        return f"archived {named}: {change.reason}"
    return f"reviewed {named}"


class BriefUpdate(BaseModel, frozen=True):
    """A topic's new name and brief."""

    topic: str
    """Id of the topic."""
    name: str
    brief: str
    seen: str
    """Fingerprint of the topic as it was when the brief was written."""


def make_brief_update(topic: Topic, name: str, brief: str) -> BriefUpdate | None:
    """The update that gives a topic a name and a brief; None if it has both already."""
    if (name, brief) == (topic.name, topic.brief):
        return None
    return BriefUpdate(topic=topic.id, name=name, brief=brief, seen=_fingerprint(topic))


def apply_brief_updates(table: TopicTable, updates: Iterable[BriefUpdate]) -> list[Topic]:
    """The topics with their new briefs.

    An update is passed over if its topic is not open any more, or has got messages, a name or a
    brief since: something newer has been written then, or the update has been applied.
    """
    found = [(table[u.topic], u) for u in updates if u.topic in table]
    return [
        topic.model_copy(update={"name": u.name, "brief": u.brief})
        for topic, u in found
        if topic.status == "open" and _fingerprint(topic) == u.seen
    ]


def _fingerprint(topic: Topic) -> str:
    said = "\0".join((topic.head or "", topic.name, topic.brief))
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16]
