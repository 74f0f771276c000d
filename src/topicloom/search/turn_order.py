"""How the ranking of messages prefers those of the topics that a turn is in.

The messages of likely topics (`turn_topics`) come earlier, the newest of a topic first; but a share
of the budget is filled by the message alone, so that a wrong topic costs little. For a question
about any time all of it is, unless one topic is clear.

In talk with an assistant the user's own messages come earlier. A message there that asks for no
fact goes on with what is going on: topics fill more of the budget, and of a topic the messages with
which a stretch of it began come earlier; so does what was said lately, if its topics were spoken of
lately. `docs/research/recall.md` has figures, and what else was tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topicloom.search.ranking import Floats, standardize
from topicloom.search.turn_topics import Grouping

_PRIOR = 2.0
"""How far the messages of a topic rise if the turn is surely in it, in standard deviations."""
_NEWEST = 1.0
"""How much further the newest message of such a topic rises."""
_FADING = 20.0
"""Messages after which a third of `_NEWEST` is left."""
_FITS = 1.0
"""Standard deviations over the mean from which a message fits the query by itself. Others are not
raised, or a large topic would fill the budget with its newest messages, whatever they say."""


@dataclass(frozen=True, slots=True)
class TopicWeights:
    """The influence of the talk's topics on a turn's recall."""

    lately: float
    """Standard deviations by which the newest message rises, whatever its topic."""
    began: float
    """The same for messages of the user with which a stretch of a topic began: they say what it was
    about."""
    beginning: float
    """What is added to `began` for topics that the turn is surely in."""
    by_message: float
    """Share of the budget that is filled without regard to topics, at least."""
    unclear: float
    """Probability of the likeliest topic up to which all is filled so."""
    clear: float
    """Probability of it from which no more than that share is; between them it is in proportion."""


ANY = TopicWeights(lately=0.0, began=0.3, beginning=0.0, by_message=0.65, unclear=0.6, clear=0.9)
"""Of any message. With a smaller share, or if topics count that are not clear, BEAM loses evidence
that stands in other topics."""
GOING_ON = TopicWeights(
    lately=1.5, began=0.8, beginning=1.0, by_message=0.5, unclear=-1.0, clear=0.0
)
"""Of one that goes on with what is going on, in talk with an assistant; see `goes_on`. With a
larger `beginning` or a smaller share BEAM finds less, and RealMem no more."""

_OWN = 0.4
"""Spreads by which the user's own messages rise in talk with an assistant: most of what such talk
is asked for is there."""
_STANDING = 0.5
"""Spreads by which the user's standing requests ("from now on ...") rise in such talk: what they
ask for holds for messages that are hardly like them."""
_WHILE = 200.0
"""Messages after which a third is left of what the newest one rises by."""
_LATELY = 0.5
"""Probability of topics that were spoken of lately from which `lately` counts in full."""
_ASSISTANT = frozenset({"", "assistant", "ai", "bot"})
"""Names that no person has."""


def fade_lately(weights: Floats, topics: Grouping) -> TopicWeights:
    """`GOING_ON`, with `lately` the less the longer ago the turn's topics were spoken of.

    Args:
        weights: Probability of each topic [k]; see `weigh_topics`. Without any, nothing fades.
        topics: The messages by topic.
    """
    if not weights.any():
        return GOING_ON
    age = len(topics.order) - 1 - topics.newest
    lately = float(weights[topics.present] @ np.exp(-age / _WHILE))
    return replace(GOING_ON, lately=GOING_ON.lately * min(1.0, lately / _LATELY))


def prefer_topics(
    priority: Floats,
    weights: Floats,
    topics: Grouping,
    beginnings: NDArray[np.bool_],
    manner: TopicWeights = ANY,
) -> Floats:
    """Priorities [n] of messages with those of likely topics first.

    A message that does not fit by itself stays where it is.

    Args:
        priority: Standardised priorities by the message alone [n].
        weights: Probability of each topic [k]; see `weigh_topics`.
        topics: The messages by topic.
        beginnings: True for the user's messages with which a stretch of their topic began [n].
        manner: How much which of them rise.
    """
    newest = np.exp(-topics.newer / _FADING)
    raised = _PRIOR + _NEWEST * newest + manner.beginning * beginnings
    fits = priority >= _FITS
    preferred: Floats = priority + np.where(fits, weights[topics.code] * raised, 0.0)
    return preferred


def prefer_own_words(
    priority: Floats,
    from_user: Floats,
    opens: NDArray[np.bool_],
    standing: NDArray[np.bool_],
    speakers: Sequence[str],
    manner: TopicWeights = ANY,
) -> Floats:
    """Standardised priorities [n]; where one person talks to an assistant, the user comes earlier.

    Args:
        priority: Priorities of the messages [n].
        from_user: 1 for the user's own, else 0 [n].
        opens: True for those with which a topic begins [n].
        standing: True for those that ask for something from then on [n].
        speakers: Names of all speakers but the user; "" for one without a name.
        manner: How much which of them rise.
    """
    scaled = standardize(priority)
    if not is_with_assistant(from_user, speakers):
        return scaled
    return scaled + from_user * (_OWN + manner.began * opens + _STANDING * standing)


def prefer_lately_said(priority: Floats, manner: TopicWeights) -> Floats:
    """Standardised priorities [n], in conversation order, with what was said lately earlier."""
    age = np.arange(len(priority))[::-1]
    return np.asarray(priority + manner.lately * np.exp(-age / _WHILE))


def is_with_assistant(from_user: Floats, speakers: Sequence[str]) -> bool:
    """True if one person talks to an assistant; see `prefer_own_words` for the arguments."""
    return not from_user.all() and {name.casefold() for name in speakers} <= _ASSISTANT


def fill_in_turn(
    by_message: NDArray[np.intp],
    by_topic: NDArray[np.intp],
    costs: Floats,
    budget: float,
    weights: Floats,
    manner: TopicWeights = ANY,
) -> NDArray[np.intp]:
    """Places of messages, the best first: a share of the budget in one order, then the other.

    The less clear it is which topic the turn is in, the larger is the share. Of what the budget
    holds, half of both comes first: that is what the index is surest of.

    Args:
        by_message: Places by the message alone, the best first.
        by_topic: The same places, those of likely topics first.
        costs: Tokens of all messages [n].
        budget: Tokens that a turn's recall may add.
        weights: Probability of each topic [k]; see `weigh_topics`.
        manner: How much of it is filled in the first order.
    """
    if not weights.any():
        return by_message
    doubt = (manner.clear - float(weights.max())) / (manner.clear - manner.unclear)
    room = budget * (manner.by_message + (1 - manner.by_message) * min(1.0, max(0.0, doubt)))
    first = _fit(by_message, costs, room)
    left = np.ones(len(costs), dtype=np.bool_)
    left[first] = False
    rest = by_topic[left[by_topic]]
    second = _fit(rest, costs, budget - costs[first].sum())
    # The budget holds these and no others; what follows is their order.
    held = _put_surest_first(first, second, by_topic, costs, room / 2, (budget - room) / 2)
    return np.concatenate([held, rest[len(second) :]])


def _put_surest_first(
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    by_topic: NDArray[np.intp],
    costs: Floats,
    first_room: float,
    topic_room: float,
) -> NDArray[np.intp]:
    """The places that two orders chose, the best of each order before the others."""
    surest = _fit(first, costs, first_room)
    others = np.concatenate([first[len(surest) :], second])
    rank = np.empty_like(by_topic)
    rank[by_topic] = np.arange(len(by_topic))
    liked = _fit(others[np.argsort(rank[others])], costs, topic_room)
    return np.concatenate([surest, liked, others[~np.isin(others, liked)]])


def _fit(places: NDArray[np.intp], costs: Floats, room: float) -> NDArray[np.intp]:
    """The first of some places, as many as fit."""
    return places[: np.searchsorted(np.cumsum(costs[places]), room, "right")]
