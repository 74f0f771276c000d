"""Which topics a message is about, as receipts say it; no ranking asks this."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topicloom.search.hits import sort_descending
from topicloom.search.ranking import Floats
from topicloom.search.turn_topics import Grouping

_RETURN = 0.3
"""Power of the stretches of talk since a topic was last spoken of by which a message is less likely
about it."""
_LIKELY, _MOST_LIKELY = 0.1, 3
"""Probability from which a topic is named, and how many at most."""


def find_likely(weights: Floats, topics: Grouping, opens: NDArray[np.bool_]) -> dict[int, float]:
    """The probability of the topics that are not unlikely, by their numbers, best first.

    Args:
        weights: Probability of each topic by what is said [k]; see `weigh_topics`.
        topics: The messages by topic.
        opens: True for the messages with which a stretch of talk begins [n].
    """
    recent = prefer_recent_topics(weights, topics, opens)
    likely = [k for k in sort_descending(recent)[:_MOST_LIKELY] if recent[k] >= _LIKELY]
    return {int(k): round(float(recent[k]), 3) for k in likely}


def prefer_recent_topics(weights: Floats, topics: Grouping, opens: NDArray[np.bool_]) -> Floats:
    """The probability of each topic [k], less the longer ago it was last spoken of.

    Args:
        weights: Probability of each by what is said [k]; see `weigh_topics`.
        topics: The messages by topic.
        opens: True for the messages with which a stretch of talk begins [n].
    """
    begun = np.cumsum(opens)
    since = begun[-1] - begun[topics.newest]
    recent = weights.copy()
    recent[topics.present] /= (1.0 + since) ** _RETURN
    total = recent.sum()
    return recent / total if total else recent
