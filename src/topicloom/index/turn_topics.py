"""Which topics a turn is in, and how the ranking of messages prefers them.

A topic is likelier the nearer its mean vector is to the message, and to the rounds that the message
goes on with, and the better the best of its messages fit. The messages of likely topics come
earlier, the newest of a topic first; but a share of the budget is filled by the message alone, so
that a wrong topic costs little. For a question about any time all of it is, unless one topic is
clear.

In talk with an assistant the user's own messages come earlier. A message there that asks for no
fact goes on with what is going on: topics fill more of the budget, and of a topic the messages with
which a stretch of it began come earlier; so does what was said lately, if its topics were spoken of
lately. `docs/research/recall.md` has figures, and what else was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topicloom.context.tokens import count_budget_tokens
from topicloom.index.embedder import Embedder, Vectors, dot_products, unit_rows
from topicloom.index.packed_examples import choose_language, load_contrast
from topicloom.index.ranking import Floats, standardize
from topicloom.state.session import NOTHING_BEFORE
from topicloom.state.stored_message import StoredMessage

_SHARED = 0.9
"""Share of the conversation's mean vector that is taken off: what all texts have in common."""
_NEAR, _BEST = 5.0, 3
"""Weight of a topic's nearness, relative to the mean fit of so many of its best messages."""
_MESSAGE = 2.0
"""Weight of the message itself, relative to the rounds before it."""
_PRIOR, _NEWEST, _FADING = 2.0, 1.0, 20.0
"""Spreads of the ranking by which the messages of a topic rise that the turn is in for sure, by
which its newest message rises on top, and after how many messages a third of that is left."""
_FITS = 1.0
"""Spreads over the mean from which a message fits by itself. One that does not is not raised: a
large topic would else fill the budget with its newest messages, whatever they say."""


@dataclass(frozen=True, slots=True)
class TopicWeights:
    """How much a turn's recall follows what the talk is about."""

    lately: float
    """Spreads by which the newest message rises, whatever its topic."""
    began: float
    """Spreads by which those of the user's messages rise with which a stretch of a topic began:
    they say what it was about."""
    beginning: float
    """Spreads by which those rise on top that are of a topic that the turn is in for sure."""
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
_RETURN = 0.3
"""Power of the stretches of talk since a topic was last spoken of by which a turn is less likely in
it. In the ranking it does not count: there what was said lately rises by itself."""
_SHORT, _HEAD = 5, 1_000
"""Tokens of a message that leaves out what it is about, such as "What did I score?": it goes on
too. And the characters that are counted."""
_ASSISTANT = frozenset({"", "assistant", "ai", "bot"})
"""Names that no person has."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What a message goes on with."""

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
    """How many messages of its topic come after each message [n]."""

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
        flat: How well each message fits by itself [n]; see `search_flat`.
        mean: Mean vector of all messages [d].
        topics: The messages by topic.
        ignored: Numbers of topics that the turn is in none of, such as archived ones or loose ends.
    """
    fit = np.zeros(len(topics.means))
    fit[topics.present] = _mean_of_best(standardize(flat), topics)
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


def goes_on(text: str, message: Vectors, embedder: Embedder) -> bool:
    """True if a message goes on with what is going on: "I'm back from the gym, what's next?"

    One that asks for a fact, such as "Which bus did I take to Kotor?", is about any time. They are
    told apart by examples of both kinds (`prompts/cues/fact_*.txt`, `going_on_*.txt`). Where an
    encoder cannot do so, or has no vector of the message, none goes on.

    Args:
        text: The message.
        message: Its vector [d].
        embedder: What made it.
    """
    if not message.any():
        return False
    kinds = load_contrast(embedder, "fact", "going_on", choose_language(embedder, text))
    if kinds is None or not kinds.half:
        return False
    return kinds.place(message) <= 0 or count_budget_tokens(text[:_HEAD]) <= _SHORT


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


def _mean_of_best(fit: Floats, topics: Grouping) -> Floats:
    """Mean fit of the `_BEST` best messages of each present topic [t]; 0 for a missing one."""
    ordered = fit[topics.order].copy()
    sizes = np.diff(np.append(topics.starts, len(ordered)))
    total = np.zeros(len(sizes))
    for _ in range(_BEST):
        best = np.maximum.reduceat(ordered, topics.starts)
        total += np.where(np.isfinite(best), best, 0.0)
        # The first of equal ones is taken off.
        is_best = np.flatnonzero(ordered == np.repeat(best, sizes))
        owner = np.searchsorted(topics.starts, is_best, "right") - 1
        _, first = np.unique(owner, return_index=True)
        ordered[is_best[first]] = -np.inf
    return np.asarray(total / _BEST)


def _softmax(values: Floats, chosen: NDArray[np.bool_]) -> Floats:
    """Probabilities [k] of those that are chosen."""
    found = np.zeros(len(values))
    if chosen.any():
        raised = np.exp(values[chosen] - values[chosen].max())
        found[chosen] = raised / raised.sum()
    return found
