"""Which topics a turn is in.

A topic is likelier the nearer its mean vector is to the message, and to the rounds that the message
goes on with, and the better the best of its messages fit. `docs/research/recall.md` has figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topicloom.search.embedder import Vectors, dot_products, unit_rows
from topicloom.search.ranking import Floats, standardize
from topicloom.state.session import NOTHING_BEFORE
from topicloom.state.stored_message import StoredMessage

_NEAR = 5.0
"""Weight of a topic's nearness, relative to the fit of its best message."""
_MESSAGE = 2.0
"""Weight of the message itself, relative to the rounds before it."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The messages that a message goes on with."""

    key: tuple[int, int, float] = NOTHING_BEFORE
    """First and last message since a topic began, and how likely it does; see `Turn.before`."""
    read: Callable[[], Sequence[StoredMessage]] = field(default=tuple, compare=False)
    """Gives these messages, oldest first; called only where a search is not remembered."""

    @property
    def continues(self) -> float:
        """Probability that the message goes on with them."""
        return self.key[2]


def weigh_topics(
    query: Vectors,
    context: Vectors,
    continues: float,
    flat: Floats,
    means: Vectors,
    mean: Vectors,
    topics: NDArray[np.integer],
    ignored: Sequence[int] = (),
) -> Floats:
    """The probability that a turn is in each topic [k]; the sum is 1, or 0 without topics.

    Args:
        query: Vector of the message [d].
        context: Vectors of the messages that it goes on with, if it does [c, d].
        continues: Probability that it does.
        flat: How well each message fits by itself [n].
        means: Mean vector of the messages of each topic [k, d].
        mean: Mean vector of all messages [d].
        topics: The number of each message's topic [n]; 0 for none.
        ignored: Numbers of topics that the turn is in none of, such as archived ones or loose ends.
    """
    fit = np.full(len(means), -np.inf)
    np.maximum.at(fit, topics, standardize(flat))
    fit[[0, *ignored]] = -np.inf
    # What all texts of the conversation have in common says nothing of any.
    centred = unit_rows(means - mean)

    def weigh(about: Vectors) -> Floats:
        (direction,) = unit_rows((about - mean)[None, :])
        return _softmax(_NEAR * dot_products(centred, direction) + fit)

    found = weigh(query)
    if len(context) and continues > 0:
        (about,) = unit_rows((continues * context.sum(axis=0) + _MESSAGE * query)[None, :])
        found = continues * weigh(about) + (1 - continues) * found
    return found


def _softmax(values: Floats) -> Floats:
    """Probabilities [k]; 0 where a value is -inf."""
    best = values.max()
    raised = np.exp(values - best) if np.isfinite(best) else np.zeros(len(values))
    return np.asarray(raised / max(1.0, raised.sum()))
