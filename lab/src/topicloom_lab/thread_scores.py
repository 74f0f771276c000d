"""How well topics agree with the known ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class ThreadScores:
    """The agreement of topics with the known ones: 1 is best."""

    ari: float
    """Adjusted Rand index."""
    one_to_one: float
    """Share of messages in the best matching of topics, one to one."""
    vi: float
    """1 - variation of information / log2 n."""
    exact: float
    """F1 of topics of two messages or more that are found exactly."""
    messages: int
    """Labelled messages."""


def score_labelled(
    gold: Sequence[str | None], predicted: Sequence[Hashable]
) -> ThreadScores | None:
    """The scores over what is labelled; None where that is less than two messages."""
    pairs = [pair for pair in zip(gold, predicted, strict=True) if pair[0] is not None]
    return thread_scores(*zip(*pairs, strict=True)) if len(pairs) > 1 else None


def thread_scores(gold: Sequence[Hashable], predicted: Sequence[Hashable]) -> ThreadScores:
    """Judge the topics of labelled messages [n], n of at least two.

    A message that is predicted to be in no topic (None) counts as a topic of its own.
    """
    from scipy.optimize import linear_sum_assignment
    from sklearn.metrics import adjusted_rand_score, mutual_info_score
    from sklearn.metrics.cluster import contingency_matrix

    known = list(gold)
    apart = [(n if topic is None else -1, topic) for n, topic in enumerate(predicted)]
    numbers = {topic: number for number, topic in enumerate(dict.fromkeys(apart))}
    found = [numbers[topic] for topic in apart]
    table = contingency_matrix(known, found)
    sizes, found_sizes = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    # A topic shares all that it has with itself.
    own = mutual_info_score(known, known) + mutual_info_score(found, found)
    varied = own - 2 * mutual_info_score(known, found)
    same = ((table == sizes) & (table == found_sizes) & (table > 1)).sum()
    sets = (sizes > 1).sum() + (found_sizes > 1).sum()
    return ThreadScores(
        ari=float(adjusted_rand_score(known, found)),
        one_to_one=float(table[linear_sum_assignment(-table)].sum() / len(known)),
        vi=1 - max(0.0, float(varied)) / float(np.log(len(known))),
        exact=float(2 * same / sets) if sets else 1.0,
        messages=len(known),
    )


def summarize_scores(scores: Iterable[ThreadScores | None]) -> dict[str, float]:
    """Means over the conversations that were judged, and how many they are."""
    judged = [found for found in scores if found is not None]
    names = ("ari", "one_to_one", "vi", "exact")
    means = {n: float(np.mean([getattr(s, n) for s in judged])) if judged else 0.0 for n in names}
    return means | {"conversations": float(len(judged))}
