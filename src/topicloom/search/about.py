"""Which topics a message is about, as receipts say it; no ranking asks this."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topicloom.search.ranking import Floats

_RETURN = 0.3
"""Power of the stretches of talk since a topic was last spoken of by which a message is less likely
about it."""
_LIKELY, _MOST_LIKELY = 0.1, 3
"""Probability from which a topic is named, and how many at most."""


def find_likely(
    weights: Floats, topics: NDArray[np.integer], opens: NDArray[np.bool_]
) -> dict[int, float]:
    """The probability of the topics that are not unlikely, by their numbers, best first.

    See `prefer_recent_topics` for the arguments.
    """
    recent = prefer_recent_topics(weights, topics, opens)
    likely = [k for k in np.argsort(-recent)[:_MOST_LIKELY] if recent[k] >= _LIKELY]
    return {int(k): round(float(recent[k]), 3) for k in likely}


def prefer_recent_topics(
    weights: Floats, topics: NDArray[np.integer], opens: NDArray[np.bool_]
) -> Floats:
    """The probability of each topic [k], less the longer ago it was last spoken of.

    Args:
        weights: Probability of each by what is said [k]; see `weigh_topics`.
        topics: The number of each message's topic [n].
        opens: True for the messages with which a stretch of talk begins [n].
    """
    begun = np.cumsum(opens)
    newest = np.zeros(len(weights))
    np.maximum.at(newest, topics, begun)
    recent = weights / (1.0 + begun[-1] - newest) ** _RETURN
    total = recent.sum()
    return np.asarray(recent / total) if total else recent
