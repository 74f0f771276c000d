"""Who speaks to whom: what a message's speaker and the names in it say about its topic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topicloom.perception.rejoin.likeness import Columns, Scalars
from topicloom.perception.rejoin.scene import Scene
from topicloom.perception.rejoin.signs import Signs, code_of
from topicloom.perception.rejoin.trace import NOT_HEARD, TopicTrace
from topicloom.perception.rejoin.traces import Floats, Places, Traces

_NEVER = NOT_HEARD.number


def people(
    lead: Signs, topics: Sequence[TopicTrace], traces: Traces, places: Places, scene: Scene
) -> tuple[Columns, Scalars]:
    """Features of speakers and names; all are 0 where nobody has a name.

    Args:
        lead: The message that opens the block.
        topics: The topics [n], at least one.
        traces: Where they lie side by side.
        places: Their places there [n].
        scene: The conversation.
    """
    to = lead.addressed if lead.addressed != lead.voice else ""
    mine, counts, asked, closed = _heard(lead.voice, topics)
    theirs = _heard(to, topics)[0]
    named = np.array([_named(lead, topic) for topic in topics], dtype=np.float64)
    calls, calls_me = _called(lead.name, topics)
    speakers = traces.speakers(places)
    by_me = _flags(speakers == lead.code)
    question, closes = _flags(traces.moods[places]).T
    spoke, known = mine > _NEVER, theirs > _NEVER
    opened = traces.openers[places] == lead.code
    pairs = {
        "voice_last": by_me * bool(lead.voice),
        "voice_in": _flags(spoke),
        "voice_share": counts / traces.sizes[places],
        "voice_gap": np.where(spoke, np.log1p(scene.number - mine), 0.0),
        "voice_latest": _latest(mine),
        "voice_opened": _flags(opened & bool(lead.voice)),
        "addressed_latest": _latest(theirs),
        "addressed_in": _flags(known),
        "addressed_last": _flags((speakers == code_of(to)) & bool(to)),
        "named_in": _flags(named > _NEVER),
        "named_latest": _latest(named),
        "called_last": calls_me,
        "called_latest": _latest(calls),
        "between": _flags(known & spoke),
        "asked_other": question * (1 - by_me),
        "asked_same": question * by_me,
        "closed": closes,
        "voice_asked": asked,
        "voice_closed": closed,
    }
    alone = {
        "addressed_known": float(known.any()),
        "addressed_unknown": float(bool(to) and not known.any()),
        "named": float((named > _NEVER).any()),
        "voice_new": float(bool(lead.voice) and not spoke.any()),
        "voice_known": float(spoke.any()),
        "voice_none": float(not lead.voice),
    }
    return pairs, alone


def _heard(voice: str, topics: Sequence[TopicTrace]) -> Floats:
    """Of a speaker in topics [4, n]: newest number, count, whether the newest asks and closes."""
    found = np.zeros((4, len(topics)))
    found[0] = _NEVER
    for column, topic in enumerate(topics) if voice else ():
        if heard := topic.spoken.get(voice):
            found[:, column] = heard[:4]
    return found


def _called(name: str, topics: Sequence[TopicTrace]) -> tuple[Floats, Floats]:
    """Of a name in topics [n]: newest number that was said to it; if the newest message has it."""
    if not name:
        return np.full(len(topics), float(_NEVER)), np.zeros(len(topics))
    calls = [topic.called.get(name, _NEVER) for topic in topics]
    return _flags(calls), _flags([t.last is not None and name in t.last.tokens for t in topics])


def _named(lead: Signs, topic: TopicTrace) -> int:
    """Number of the newest message by anyone in the topic whom the message names."""
    if topic.spoken.keys().isdisjoint(lead.tokens):
        return _NEVER
    named = (topic.spoken[name] for name in lead.tokens if name in topic.spoken)
    return max((h.number for h in named if h.name and h.name != lead.voice), default=_NEVER)


def _latest(numbers: Floats) -> Floats:
    """1 at the topic with the highest number [n], unless there is none."""
    top = numbers.max()
    return _flags((numbers == top) & (top > _NEVER))


def _flags(values: object) -> Floats:
    return np.asarray(values, dtype=np.float64)
