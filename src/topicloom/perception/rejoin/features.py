"""Features of a block beside each open topic, and of the block on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.perception.rejoin.likeness import Columns, Scalars, likeness
from topicloom.perception.rejoin.people import people
from topicloom.perception.rejoin.scene import Scene
from topicloom.perception.rejoin.signs import Signs
from topicloom.perception.rejoin.trace import TopicTrace, together
from topicloom.perception.rejoin.traces import Floats, Places, Traces
from topicloom.perception.rejoin.wording import in_last, wording

VERSION = 2
"""Raise it with any change to what a feature means."""

_CONTESTED = (
    "last", "most", "all", "first", "same_voice", "subject_most", "subject_all",
    "reply_subject_most", "reply_subject_all", "both_subject", "reply_most", "words", "telling",
    "reply_words", "reply_telling",
)  # fmt: skip
"""Features of which it also counts how far a topic is before the others, and what the best has."""


@dataclass(frozen=True, slots=True)
class Features:
    """What the choice is made from; columns are in the order of the names."""

    pair_names: tuple[str, ...]
    """Names of the columns of `pairs`."""
    alone_names: tuple[str, ...]
    """Names of the entries of `alone`."""
    pairs: NDArray[np.float32]
    """The block beside each topic [n, p]."""
    alone: NDArray[np.float32]
    """The block, and the best that it has [a]."""
    usual: float
    """Mean cosine of the message to what is kept of the topics."""
    spread: float
    """Its standard deviation."""


def features_of(
    lead: Signs, reply: Signs | None, topics: Sequence[TopicTrace], scene: Scene
) -> Features:
    """Compare a block with the open topics.

    Args:
        lead: The message that opens the block.
        reply: What was answered, where it is known already.
        topics: The topics [n], at least one.
        scene: The conversation before the block.
    """
    traces, places = together(topics)
    newest = int(traces.numbers[places].argmax())
    near = likeness(lead, reply, traces, places, scene)
    worded, unworded = wording(lead, reply, traces, places)
    spoken, unspoken = people(lead, topics, traces, places, scene)
    pairs = _recency(lead, traces, places, scene, newest) | near.pairs | worded | spoken
    pairs["words_last"] = in_last(lead, topics)
    alone = _plain(lead, reply, len(topics), scene) | unworded | unspoken
    contested = np.concatenate([pairs[name] for name in _CONTESTED]).reshape(len(_CONTESTED), -1)
    both = np.concatenate([*pairs.values(), leads_of(contested).ravel()])
    ends = (contested.max(axis=1), contested[:, newest], [*alone.values(), pairs["most"].mean()])
    return Features(
        pair_names=(*pairs, *(f"{name}_lead" for name in _CONTESTED)),
        alone_names=(*_BESTS, *alone, "mean_most"),
        pairs=both.reshape(-1, len(topics)).T.astype(np.float32),
        alone=np.concatenate(ends).astype(np.float32),
        usual=near.usual,
        spread=near.spread,
    )


_BESTS = tuple(f"{kind}_{name}" for kind in ("best", "newest") for name in _CONTESTED)


def leads_of(values: Floats) -> Floats:
    """Each value [k, n] less the best of the others in its row; 0 if there are none."""
    if values.shape[1] < 2:
        return np.zeros_like(values)
    ordered = np.partition(values, -2, axis=1)
    second, best = ordered[:, -2:-1], ordered[:, -1:]
    return np.asarray(values - np.where(values == best, second, best))


def _recency(lead: Signs, traces: Traces, places: Places, scene: Scene, newest: int) -> Columns:
    numbers = traces.numbers[places]
    minutes = np.zeros(len(places))
    timed = minutes
    if lead.hours is not None:
        passed = (lead.hours - traces.hours[places]) * 60
        timed = (passed == passed).astype(np.float64)  # not nan
        minutes = np.log1p(np.fmax(passed, 0))
    on_newest = np.zeros(len(places))
    on_newest[newest] = 1
    by_other = scene.before is not None and bool(lead.voice) and scene.before.voice != lead.voice
    return {
        "gap": np.log(scene.number - numbers),
        "rank": np.log1p(np.argsort(np.argsort(-numbers))),
        "newest": on_newest,
        "minutes": minutes,
        "timed": timed,
        "size": np.log(traces.sizes[places]),
        "age": np.log1p(scene.number - traces.firsts[places]),
        "newest_stayed": on_newest * scene.stayed,
        "newest_run": on_newest * np.log1p(scene.run),
        "newest_by_other": on_newest * by_other,
        "newest_of_two": on_newest * scene.two(lead.voice),
    }


def _plain(lead: Signs, reply: Signs | None, topics: int, scene: Scene) -> Scalars:
    before = scene.before
    return {
        "question": float(lead.question),
        "length": lead.length,
        "continues": float(lead.continues),
        "closes": float(lead.closes),
        "pause": float(np.log1p(_minutes(before, lead))),
        "same_voice": float(bool(lead.voice) and before is not None and before.voice == lead.voice),
        "stayed": scene.stayed,
        "run": float(np.log1p(scene.run)),
        "opened": scene.opened,
        "topics": float(np.log1p(topics)),
        "messages": float(np.log1p(scene.number)),
        "two": float(scene.two(lead.voice)),
        "replied": float(reply is not None),
        "reply_length": reply.length if reply else 0.0,
        "reply_question": float(reply is not None and reply.question),
    }


def _minutes(earlier: Signs | None, later: Signs) -> float:
    """Minutes between two messages, 0 where they are not known."""
    if earlier is None or earlier.hours is None or later.hours is None:
        return 0.0
    return max(0.0, (later.hours - earlier.hours) * 60)
