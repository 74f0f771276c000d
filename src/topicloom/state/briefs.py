"""Briefs that were written beside the graph, until a node of the graph takes them in.

Only the graph writes the table of topics: a second writer could undo a turn. So a reflection leaves
its briefs as updates, and the graph applies those that still fit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from pydantic import BaseModel

from topicloom.state.topics import Topic, TopicTable


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
