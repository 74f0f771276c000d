"""The life of a topic: five states, and every step between them.

```
            create                 divide
              |          +-> active ------> divided
              v activate |   |   ^ |
           dormant ------+   |   | +--> merged        divide, merge: also from dormant
              |   <----------+   |
              |    deactivate    | revive
              +--> archived -----+
           archive       restore: from archived and merged to dormant, by a person's hand
```

Whether an open topic is active or dormant is the session's to say, the rest stands in its row.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Literal

from topicloom.errors import TransitionError
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic, TopicStatus
from topicloom.texts import FilledText

TopicState = Literal["active", "dormant", "archived", "divided", "merged"]
TopicEvent = Literal["activate", "deactivate", "divide", "archive", "revive", "merge", "restore"]
"""`archive` is for reviews and people only, `restore` for people, `revive` only for a search that
the user asked for. A new topic is active, or dormant if there is no room for another active one."""

TRANSITIONS: Mapping[tuple[TopicState, TopicEvent], TopicState] = {
    ("dormant", "activate"): "active",
    ("active", "deactivate"): "dormant",
    ("active", "divide"): "divided",
    ("dormant", "divide"): "divided",
    ("dormant", "archive"): "archived",
    ("archived", "revive"): "active",
    ("active", "merge"): "merged",
    ("dormant", "merge"): "merged",
    ("archived", "merge"): "merged",
    ("archived", "restore"): "dormant",
    ("merged", "restore"): "dormant",
}
"""Every step there is."""

_STATUS: Mapping[TopicState, TopicStatus] = {
    "active": "open",
    "dormant": "open",
    "archived": "archived",
    "divided": "divided",
    "merged": "merged",
}


def get_state(topic: Topic, active: Container[str]) -> TopicState:
    """The state of a topic by its row and the ids of the session's active topics."""
    if topic.status == "open":
        return "active" if topic.id in active else "dormant"
    return topic.status


def apply_event(topic: Topic, event: TopicEvent, active: Container[str]) -> Topic:
    """A topic's row after an event, but for being active; `TransitionError` if there is no such
    step.
    """
    before = get_state(topic, active)
    after = TRANSITIONS.get((before, event))
    if after is None:
        raise TransitionError(
            "topic {topic} {name!r}: there is no step {event!r} for a topic that is {state}",
            topic=topic.id,
            name=topic.name,
            event=event,
            state=FilledText(before),
        )
    return topic.model_copy(update={"status": _STATUS[after]})


def mark_active(topic: Topic, active: Container[str], *, asked: bool = False) -> Topic:
    """The row of a topic that is active from now on, if it was so before or not.

    Raises `TransitionError` if it cannot be: nothing but a user who `asked` revives archived ones.
    """
    state = get_state(topic, active)
    if state == "active":
        return topic
    return apply_event(topic, "revive" if asked and state == "archived" else "activate", active)


def mark_divided(topic: Topic, active: Container[str]) -> Topic:
    """The row of an open topic whose messages belong to its parts from now on.

    Raises `TransitionError` if it is not open.
    """
    return apply_event(topic, "divide", active).emptied()


def mark_archived(topic: Topic, active: Container[str], month: str) -> Topic:
    """A dormant topic's row in the archive of a month, `2026-03`; else raises `TransitionError`."""
    return apply_event(topic, "archive", active).model_copy(update={"archived": month})


def merge_topic_rows(survivor: Topic, other: Topic, active: Container[str]) -> tuple[Topic, Topic]:
    """The rows of two topics, the other one merged into the survivor, which keeps name and brief.

    A brief written anew is the caller's business, and so are moving the messages and the figures
    that follow from them, but for tokens. Raises `TransitionError` if one may not be merged, or
    they are the same.
    """
    if survivor.id == other.id or get_state(survivor, active) not in ("active", "dormant"):
        raise TransitionError(
            "topic {topic} {name!r} cannot be merged into {survivor} ({state})",
            topic=other.id,
            name=other.name,
            survivor=survivor.id,
            state=FilledText(get_state(survivor, active)),
        )
    tokens = survivor.tokens + other.tokens
    merged = survivor.model_copy(update={"tokens": tokens, "room": 0})
    gone = apply_event(other, "merge", active).emptied()
    return merged, gone.model_copy(update={"merged_into": survivor.id})


def find_survivor(topic: Topic, topics: Mapping[str, Topic]) -> str:
    """Id of the topic that a topic's messages went to by merges; its own if it was not merged."""
    seen = {topic.id}
    while (other := topic.merged_into) is not None and other in topics and other not in seen:
        topic = topics[other]
        seen.add(other)
    return topic.id


def merge_in_order(*runs: Iterable[StoredMessage]) -> list[StoredMessage]:
    """Messages of several topics, each once, in the order of the conversation."""
    return sorted({r.seq: r for run in runs for r in run}.values(), key=lambda r: r.seq)
