"""Words that a message shares with each open topic, rare ones first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topicloom.perception.rejoin.likeness import Columns, Scalars
from topicloom.perception.rejoin.signs import Signs
from topicloom.perception.rejoin.trace import TopicTrace
from topicloom.perception.rejoin.traces import Floats, Places, Traces

_SHORT = 2.0
"""Words put to the length of a message, so that one word shared of one is not everything."""


def wording(
    lead: Signs, reply: Signs | None, traces: Traces, places: Places
) -> tuple[Columns, Scalars]:
    """Compare a block with topics by words; `likeness.likeness` gives the arguments."""
    pairs, alone = _shared(lead, traces, places)
    answered, fresh = _shared(reply, traces, places)
    pairs |= {f"reply_{name}": values for name, values in answered.items()}
    return pairs, alone | {"reply_unseen": fresh["unseen"]}


def in_last(lead: Signs, traces: Sequence[TopicTrace]) -> Floats:
    """Share of a message's words that the newest message of each topic [n] holds."""
    known = frozenset(lead.words.tolist())
    shared = [len(known & trace.last_words) for trace in traces]
    return np.array(shared) / (len(known) + _SHORT)


def _shared(part: Signs | None, traces: Traces, places: Places) -> tuple[Columns, Scalars]:
    """Overlap with each topic [n], and what no topic has."""
    if part is None or not len(part.words):
        none = np.zeros(len(places))
        names = ("words", "telling", "only_here")
        return dict.fromkeys(names, none), {"unseen": 0.0, "unseen_rare": 0.0}
    counts = traces.counts(part.words, places)
    has = (counts > 0).astype(np.float64)
    messages, topics = counts.sum(axis=0), has.sum(axis=0)
    # Rare among the messages, and told apart by: held by few of the topics.
    rare = np.log((traces.sizes[places].sum() + 1) / (messages + 0.5))
    telling = np.log((len(places) + 1) / np.maximum(topics, 0.5))
    new = topics == 0
    total = float(rare.sum()) + _SHORT
    pairs = {
        "words": has @ rare / total,
        "telling": has @ np.where(new, 0.0, telling) / (float(telling.sum()) + 1),
        "only_here": np.log1p(has @ (topics == 1).astype(np.float64)),
    }
    return pairs, {"unseen": float(new.mean()), "unseen_rare": float(rare[new].sum()) / total}
