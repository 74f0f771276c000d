"""Which topics a turn is in.

A topic is likelier the nearer its mean vector is to the message, and to the rounds that the message
goes on with, and the better the best of its messages fit. `docs/research/recall.md` has figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.search.embedder import Vectors, dot_products, unit_rows
from topicloom.search.ranking import Floats, standardize
from topicloom.state.session import NOTHING_BEFORE
from topicloom.state.stored_message import StoredMessage

_SHARED = 0.9
"""Share of the conversation's mean vector that is taken off: what all texts have in common."""
_NEAR = 5.0
"""Weight of a topic's nearness, relative to the fit of its best message."""
_MESSAGE = 2.0
"""Weight of the message itself, relative to the rounds before it."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The messages that a message goes on with."""

    key: tuple[int, int, float] = NOTHING_BEFORE
    """First and last message since a topic began, and how likely it does; see `Turn.before`."""
    read: Callable[[], Sequence[StoredMessage]] = tuple
    """Gives these messages, oldest first; called only where a search is not remembered."""

    @property
    def continues(self) -> float:
        """Probability that the message goes on with them."""
        return self.key[2]


@dataclass(frozen=True, slots=True)
class Grouping:
    """The messages [n] by topic."""

    code: NDArray[np.integer]
    """Each one's topic, by number [n]."""
    means: Vectors
    """Mean vector of the messages of each topic [k, d]; zero for a number without messages."""
    order: NDArray[np.intp]
    """Places of the messages by topic, in conversation order within one [n]."""
    starts: NDArray[np.intp]
    """Where each of the `present` topics begins in `order` [t]."""
    present: NDArray[np.intp]
    """The topics that have messages, ascending [t]."""
    newer: NDArray[np.intp]
    """The number of messages of its topic that come after each message [n]."""

    @property
    def newest(self) -> NDArray[np.intp]:
        """Place of the newest message of each of the `present` topics [t]."""
        last = np.append(self.starts[1:], len(self.order)) - 1
        return np.asarray(self.order[last])


def group_by_topic(code: NDArray[np.integer], means: Vectors) -> Grouping:
    """Group messages [n], in conversation order, by the number of their topic."""
    order = np.argsort(code, kind="stable")
    ordered = code[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    ends = np.append(starts[1:], len(code))
    newer = np.empty(len(code), dtype=np.intp)
    newer[order] = np.repeat(ends, ends - starts) - 1 - np.arange(len(code))
    return Grouping(code, means, order, starts, ordered[starts].astype(np.intp), newer)


def weigh_topics(
    query: Vectors,
    context: Vectors,
    continues: float,
    flat: Floats,
    mean: Vectors,
    topics: Grouping,
    ignored: Sequence[int] = (),
) -> Floats:
    """The probability that a turn is in each topic [k]; the sum is 1, or 0 without topics.

    Args:
        query: Vector of the message [d].
        context: Vectors of the messages that it goes on with, if it does [c, d].
        continues: Probability that it does.
        flat: How well each message fits by itself [n].
        mean: Mean vector of all messages [d].
        topics: The messages by topic.
        ignored: Numbers of topics that the turn is in none of, such as archived ones or loose ends.
    """
    fit = np.zeros(len(topics.means))
    fit[topics.present] = np.maximum.reduceat(standardize(flat)[topics.order], topics.starts)
    centred = unit_rows(topics.means - _SHARED * mean)
    chosen = np.zeros(len(topics.means), dtype=np.bool_)
    chosen[topics.present] = True
    chosen[[0, *ignored]] = False  # those of number 0 are in no topic

    def weigh(about: Vectors) -> Floats:
        (direction,) = unit_rows((about - _SHARED * mean)[None, :])
        return _softmax(_NEAR * dot_products(centred, direction) + fit, chosen)

    found = weigh(query)
    if len(context) and continues > 0:
        (about,) = unit_rows((continues * context.sum(axis=0) + _MESSAGE * query)[None, :])
        found = continues * weigh(about) + (1 - continues) * found
    return found


def _softmax(values: Floats, chosen: NDArray[np.bool_]) -> Floats:
    """Probabilities [k] of those that are chosen."""
    found = np.zeros(len(values))
    if chosen.any():
        raised = np.exp(values[chosen] - values[chosen].max())
        found[chosen] = raised / raised.sum()
    return found
