"""The decisions of a review: the topics to assess, to archive and to merge.

Pure: the clock is a value, and so are the answers of roles and the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from pydantic import BaseModel, Field

from topicloom.state.changes import TopicChange, find_month, fingerprint_topic
from topicloom.state.stored_message import parse_iso_seconds
from topicloom.state.topics import Topic, TopicTable

_DAY = 86_400.0
_ROOM = 0.5
"""Share of what a topic may have that two may come to together: merged, they can still grow for
some time before they are divided again."""
_ASKED = 4
"""Pairs that a role is asked about for each that may be merged."""


class ReviewPolicy(BaseModel, frozen=True, extra="forbid"):
    """The rules by which a review archives and merges.

    A dormant topic that was not spoken of for `dormant_days` is archived if it was asked once and
    is over, if it is unimportant, or if it is unrelated to what is being talked about and not
    important either.
    """

    dormant_days: float = Field(default=7.0, ge=0)
    """Days for which a topic may be dormant before it can be archived."""
    unimportant: float = Field(default=0.3, ge=0, le=1)
    """A topic below this importance is archived."""
    important: float = Field(default=0.6, ge=0, le=1)
    """A topic of this importance or more stays, even if it is unrelated to the conversation."""
    unrelated: float = Field(default=0.2, ge=-1, le=1)
    """A topic below this likeness to the conversation is unrelated. Likeness is the cosine of their
    mean vectors, less what all messages have in common."""
    merges: int = Field(default=3, ge=0)
    """Merges in one review at most."""


class Assessment(BaseModel, frozen=True):
    """A reviewer's answer about a topic."""

    name: str
    """A few words; empty to keep the name."""
    brief: str
    """About 1 KB, by which the topic is recognised."""
    summary: str
    """A summary of what was said, in a few hundred words at most."""
    importance: float
    """Importance, 0 to 1."""
    once: bool = False
    """True if it was asked once and is over."""


class TopicStats(BaseModel, frozen=True):
    """Figures of an open topic, known without asking a role."""

    topic: str
    awake: bool = False
    """True if it is active, or a person pinned it or took it out of the archive."""
    spoken: tuple[str, ...] = ()
    """Times of the newest messages that were in it or that it was read for, ISO 8601."""
    uses: int = 0
    """How often it was quoted lately, and how many topics refer to it."""


class TopicPair(BaseModel, frozen=True):
    """Two open topics that seem to be about the same thing."""

    kept: str
    other: str
    likeness: float
    same: bool = False
    together: Assessment | None = None


class ReviewFindings(BaseModel, frozen=True):
    """The findings about the topics, all by id."""

    looks: tuple[TopicStats, ...]
    assessed: Mapping[str, Assessment] = {}
    pairs: tuple[TopicPair, ...] = ()
    """Those that are the same; each topic is in one at most."""
    near: Mapping[str, float] = {}
    """Their nearness to the discussion, once the pairs are merged."""


def is_due(topic: Topic) -> bool:
    """True if a topic was changed since it was last reviewed, or has lost its summary."""
    held = topic.status == "open" and topic.count > 0
    return held and (topic.content != topic.reviewed or not topic.summary)


def count_idle_days(look: TopicStats, now: datetime) -> float:
    """Days since a topic was last discussed; 0 if unknown, or if the clock went backwards."""
    times = [t for time in look.spoken if (t := parse_iso_seconds(time)) is not None]
    return max(0.0, (now.timestamp() - max(times)) / _DAY) if times else 0.0


def pair_topics(one: Topic, other: Topic, likeness: float, limit: int) -> TopicPair | None:
    """Two topics as a pair to ask about; None if they should not be merged in any case.

    Parts of one topic were divided on purpose, and what a person put into a topic stays apart.
    What a person named or pinned is not merged into another. `limit` is in tokens of one topic.
    """
    siblings = one.parent is not None and one.parent == other.parent
    by_hand = {*one.by_hand, *other.by_hand}
    if siblings or "sorted" in by_hand or one.tokens + other.tokens > _ROOM * limit:
        return None
    kept, gone = sorted((one, other), key=lambda t: (not t.by_hand, -t.tokens, len(t.id), t.id))
    if gone.by_hand:
        return None
    return TopicPair(kept=kept.id, other=gone.id, likeness=likeness)


def select_likeliest(pairs: Iterable[TopicPair], policy: ReviewPolicy) -> list[TopicPair]:
    """The pairs that a role is asked about: some more than may be merged, the most alike first."""
    ranked = sorted(pairs, key=lambda p: (-p.likeness, p.kept, p.other))
    return ranked[: _ASKED * policy.merges]


def select_merges(pairs: Iterable[TopicPair], policy: ReviewPolicy) -> list[TopicPair]:
    """Those of the pairs, most alike first, that are merged: each topic is in one at most."""
    chosen: list[TopicPair] = []
    taken: set[str] = set()
    for pair in pairs:
        if pair.same and taken.isdisjoint((pair.kept, pair.other)):
            chosen.append(pair)
            taken |= {pair.kept, pair.other}
    return chosen[: policy.merges]


def decide_changes(
    table: TopicTable, found: ReviewFindings, now: datetime, policy: ReviewPolicy
) -> list[TopicChange]:
    """The changes by which a review acts on its findings, merges first."""
    looks = {look.topic: look for look in found.looks}
    changes = []
    for pair in found.pairs:
        look = _join_stats(looks.pop(pair.kept), looks.pop(pair.other))
        change = _make_merge(pair, table, found)
        last_at = max(table[pair.kept].last_at, table[pair.other].last_at)
        if pair.together:  # without a description it is unknown whether the topic is over
            change = _add_archiving(change, look, last_at, found, now, policy)
        changes.append(change)
    for look in looks.values():
        topic = table[look.topic]
        change = _make_change(topic, found.assessed.get(topic.id))
        change = _add_archiving(change, look, topic.last_at, found, now, policy)
        if change.reviewed or change.archive:
            changes.append(change)
    return changes


def _join_stats(kept: TopicStats, other: TopicStats) -> TopicStats:
    # Of a pair of which one time is unknown, nobody can say for how long it was left alone.
    dated = all(any(map(parse_iso_seconds, look.spoken)) for look in (kept, other))
    return TopicStats(
        topic=kept.topic,
        awake=kept.awake or other.awake,
        spoken=(*kept.spoken, *other.spoken) if dated else (),
    )


def _make_merge(pair: TopicPair, table: TopicTable, found: ReviewFindings) -> TopicChange:
    """The change that merges a pair; without a description of both, the topic is due again."""
    kept = table[pair.kept]
    change = _make_change(kept, pair.together or found.assessed.get(kept.id))
    return change.model_copy(
        update={
            "reviewed": pair.together is not None,
            "absorbs": pair.other,
            "absorbed_seen": fingerprint_topic(table[pair.other]),
            "reason": f"they are about the same thing (likeness {pair.likeness:.2f})",
        }
    )


def _make_change(topic: Topic, assessment: Assessment | None) -> TopicChange:
    known = assessment or topic
    return TopicChange(
        topic=topic.id,
        seen=fingerprint_topic(topic),
        name=known.name or topic.name,
        brief=known.brief,
        summary=known.summary,
        importance=known.importance,
        once=known.once,
        reviewed=assessment is not None,
    )


def _add_archiving(
    change: TopicChange,
    look: TopicStats,
    last_at: str,
    found: ReviewFindings,
    now: datetime,
    policy: ReviewPolicy,
) -> TopicChange:
    why = _explain_archiving(change, look, found.near.get(look.topic, 1.0), now, policy)
    if not why:
        return change
    reason = "; ".join(filter(None, (change.reason, why)))
    return change.model_copy(update={"archive": find_month(last_at, now), "reason": reason})


def _explain_archiving(
    change: TopicChange, look: TopicStats, near: float, now: datetime, policy: ReviewPolicy
) -> str:
    """The reason to archive a topic as a change leaves it; empty if it stays."""
    days, importance = count_idle_days(look, now), change.importance
    if look.awake or days <= policy.dormant_days or importance is None:
        return ""
    unrelated = near < policy.unrelated and importance < policy.important
    causes = {
        "asked once and over": change.once,
        f"of little importance ({importance:.2f})": importance < policy.unimportant,
        "unrelated to what is being talked about": unrelated,
    }
    why = ", ".join(cause for cause, holds in causes.items() if holds)
    return f"not spoken of for {days:.0f} days, {why}" if why else ""
