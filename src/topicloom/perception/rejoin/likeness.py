"""How near a message is to each open topic, in meaning and in subject.

Cosines are taken less the message's mean cosine to all that is kept, in units of the
conversation's usual spread: what the whole conversation has in common falls out, and scripts whose
cosines live on other scales become alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topicloom.perception.rejoin.scene import Scene
from topicloom.perception.rejoin.signs import Signs
from topicloom.perception.rejoin.traces import (
    FIRST,
    KEPT,
    NEWEST,
    SUM,
    THREE,
    Floats,
    Places,
    Traces,
    row_of,
)

Columns = dict[str, Floats]
"""Features of each topic [n], by name."""
Scalars = dict[str, float]
"""Features of the message or of the conversation, by name."""

_PULL = 5.0
"""Cosines at the conversation's usual value that are put to a message's own mean."""
_OWN_SPREAD, _LEAST_SPREAD = 0.3, 0.02
"""Weight of the message's own spread beside the conversation's, and the least spread of all."""
_LOW = -9.0
"""Stands for a cosine that does not exist."""


class Likeness(NamedTuple):
    """Features by cosine, and what they are measured by."""

    pairs: Columns
    usual: float
    """Mean cosine of the message to what is kept."""
    spread: float
    """Its standard deviation."""


def likeness(
    lead: Signs, reply: Signs | None, traces: Traces, places: Places, scene: Scene
) -> Likeness:
    """Compare a block with topics by cosines.

    Args:
        lead: The message that opens the block.
        reply: What was answered, where it is known already.
        traces: Where the topics are.
        places: Which they are [n], at least one.
        scene: The conversation.
    """
    sizes = traces.sizes[places]
    there = np.arange(NEWEST) < sizes[:, None]
    own = there & (traces.voices[places] == lead.code)
    ends = np.arange(len(places)), row_of(sizes - 1), row_of(np.maximum(0, sizes - 2))
    raw = traces.cosines(traces.vectors, lead.vector, places)
    kept = raw[:, KEPT:][there]
    usual = (float(kept.sum()) + _PULL * scene.usual) / (len(kept) + _PULL)
    spread = float(kept.std()) if len(kept) > 3 else scene.spread
    unit = (1 - _OWN_SPREAD) * scene.spread + _OWN_SPREAD * spread + _LEAST_SPREAD
    pairs = _by_meaning((raw - usual) / unit, there, own, ends)
    none = np.zeros(raw.shape)
    for name, part in (("subject", lead), ("reply_subject", reply)):
        cosines = traces.cosines(traces.gists, part.gist, places) if part else none
        pairs |= {f"{name}_{k}": v for k, v in _by_subject(cosines, there, ends).items()}
    pairs["both_subject"] = pairs["subject_all"] + pairs["reply_subject_all"]
    answers = none
    if reply is not None:
        answers = (traces.cosines(traces.vectors, reply.vector, places) - usual) / unit
    pairs |= {
        "reply_last": answers[ends[0], ends[1]],
        "reply_three": answers[:, THREE],
        "reply_most": np.where(there, answers[:, KEPT:], _LOW).max(axis=1),
        "reply_all": answers[:, SUM],
        "reply_first": answers[:, FIRST],
    }
    return Likeness(pairs, usual, spread)


_Ends = tuple[Places, Places, Places]
"""Topics [n], and the rows of the newest message of each and of the one before it."""


def _by_meaning(
    cosines: Floats, there: NDArray[np.bool_], own: NDArray[np.bool_], ends: _Ends
) -> Columns:
    """Features of standardised cosines [n, rows] to the trails."""
    kept = np.where(there, cosines[:, KEPT:], _LOW)
    top = -np.partition(-kept, 2, axis=1)[:, :3]
    found = np.minimum(there.sum(axis=1), 3)
    has_own = own.any(axis=1)
    return {
        "last": cosines[ends[0], ends[1]],
        "second": cosines[ends[0], ends[2]],
        "three": cosines[:, THREE],
        "most": top[:, 0],
        "top": np.where(top > _LOW, top, 0).sum(axis=1) / found,
        "all": cosines[:, SUM],
        "first": cosines[:, FIRST],
        "same_voice": np.where(has_own, np.where(own, kept, _LOW).max(axis=1), 0.0),
        "has_same_voice": has_own.astype(np.float64),
    }


def _by_subject(cosines: Floats, there: NDArray[np.bool_], ends: _Ends) -> Columns:
    """Cosines in the lexicon's space, as they are: it is trained to make them mean the same."""
    return {
        "last": cosines[ends[0], ends[1]],
        "three": cosines[:, THREE],
        "most": np.where(there, cosines[:, KEPT:], _LOW).max(axis=1),
        "all": cosines[:, SUM],
    }
