"""The hierarchy of topics: paths down to a topic, and what lies below one.

A part is made after the topic that it is a part of, so there are no cycles; rows that were
edited by hand may have some, and every walk here ends all the same. None of them recurses: a
matter that one speaks of for years is divided again and again.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from topicloom.state.recall import find_number
from topicloom.state.topics import Topic, TopicTable

PATH_SEPARATOR = " / "
"""Stands between the names of a path."""
_MAX_NAMES = 3
"""Names of a path that are shown at most: the first and the last ones."""
_CACHE_SIZE = 16_384
"""Paths whose names are cached: few change from one turn to the next."""
_NUMBERED = re.compile(r"(.*\S) \(\d{1,9}\)", re.DOTALL)


def find_path(topic: Topic, topics: Mapping[str, Topic]) -> list[Topic]:
    """The topics from the top of the hierarchy down to a topic, itself last."""
    path, seen = [topic], {topic.id}
    while (parent := path[-1].parent) in topics and parent not in seen:
        assert parent is not None  # `None in topics` is false
        path.append(topics[parent])
        seen.add(parent)
    return path[::-1]


def build_full_name(topic: Topic, topics: Mapping[str, Topic]) -> str:
    """A topic's name behind those of the topics that it is a part of: `House / Kitchen / Tiles`.

    A part that is called like its parent, but for a number, stands for both; of a long path
    the first name and the last ones are shown.
    """
    return _join_names(tuple(t.name for t in find_path(topic, topics)))


@lru_cache(_CACHE_SIZE)
def _join_names(names: tuple[str, ...]) -> str:
    shown = [n for n, below in itertools.pairwise(names) if strip_number(n) != strip_number(below)]
    shown.append(names[-1])
    if len(shown) > _MAX_NAMES:
        shown = [shown[0], "…", *shown[1 - _MAX_NAMES :]]
    return PATH_SEPARATOR.join(shown)


def add_full_names(topics: Sequence[Topic], known: Mapping[str, Topic]) -> list[Topic]:
    """Topics under their full names, as splitters and routers see them."""
    return [_add_full_name(t, known) for t in topics]


def _add_full_name(topic: Topic, known: Mapping[str, Topic]) -> Topic:
    """A topic under its full name; of an archived one, the summary stands for its brief."""
    brief = _choose_brief(topic)
    if topic.parent is None and brief == topic.brief:
        return topic
    return topic.model_copy(update={"name": build_full_name(topic, known), "brief": brief})


def describe_topic(topic: Topic, known: Mapping[str, Topic]) -> str:
    """The words that a topic is recognised by; none of one in the making, which has no brief."""
    brief = _choose_brief(topic)
    return f"{build_full_name(topic, known)}. {brief}" if brief else ""


def _choose_brief(topic: Topic) -> str:
    return topic.summary if topic.status == "archived" and topic.summary else topic.brief


def find_successors(topic_id: str | None, topics: Mapping[str, Topic]) -> list[Topic]:
    """The open topics that hold what a topic held, in the order in which they were made.

    An open topic is its own; a divided one leaves everything to its parts and theirs, a merged
    one to what it was merged into. What is archived has none.
    """
    parts: dict[str, list[str]] = {}
    for topic in topics.values():
        if topic.parent is not None:
            parts.setdefault(topic.parent, []).append(topic.id)
    found: list[Topic] = []
    seen: set[str] = set()
    left = [topic_id]
    while left:
        current = left.pop()
        if current is None or current in seen or current not in topics:
            continue
        seen.add(current)
        topic = topics[current]
        if topic.status == "open":
            found.append(topic)
        elif topic.status == "divided":
            left += parts.get(current, ())
        else:
            left.append(topic.merged_into)
    return sorted(found, key=lambda t: find_number(t.id, "t") or 0)


def find_continuation(topic_id: str | None, topics: Mapping[str, Topic]) -> Topic | None:
    """The open topic in which a topic goes on: the one of its heirs that was last spoken of."""
    found = find_successors(topic_id, topics)
    return max(found, key=lambda t: (t.newest, find_number(t.id, "t") or 0), default=None)


def strip_number(name: str) -> str:
    """A name without the number at its end: `Rain` of `Rain (2)`."""
    match = _NUMBERED.fullmatch(name)
    return match[1] if match else name


def drop_empty(table: TopicTable) -> TopicTable:
    """The topics that have messages of their own: what an index holds."""
    return TopicTable({t.id: t for t in table if t.count})
