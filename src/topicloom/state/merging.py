"""Merging two topics that are about the same thing: their rows."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from topicloom.errors import TransitionError
from topicloom.state.lifecycle import apply_event, get_state
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic


def merge_topic_rows(survivor: Topic, other: Topic, active: Container[str]) -> tuple[Topic, Topic]:
    """The rows of two topics, the other one merged into the survivor, which keeps name and brief.

    A brief written anew is the caller's business, and so is moving the messages: until then heads
    stay as they are. Raises `TransitionError` if one may not be merged, or they are the same.
    """
    if survivor.id == other.id or get_state(survivor, active) not in ("active", "dormant"):
        raise TransitionError(
            f"topic {other.id} {other.name!r} cannot be merged into {survivor.id} "
            f"({get_state(survivor, active)})"
        )
    times = sorted(t for x in (survivor, other) for t in (x.first_at, x.last_at) if t)
    merged = survivor.model_copy(
        update={
            "count": survivor.count + other.count,
            "tokens": survivor.tokens + other.tokens,
            "room": survivor.room if survivor.room == other.room else 0,
            "first_at": times[0] if times else "",
            "last_at": times[-1] if times else "",
            "newest": max(survivor.newest, other.newest),
        }
    )
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
    """Messages of several topics in the order of the conversation, as a topic keeps them."""
    return sorted((r for run in runs for r in run), key=lambda r: r.seq)
