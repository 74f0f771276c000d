"""Training the model of belonging: which weights tell pairs of runs of one topic from others.

Runs are cut as a split cuts them, and finer and coarser, so that the weights hold for short and
long ones. Each kind of conversation counts as much as its weight, however many it has. How well
the weights group the runs of a whole conversation is judged by the adjusted Rand index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from topicloom import Embedder
from topicloom.lab import (
    Adsorber,
    BelongingWeights,
    Codes,
    MessageColumns,
    Pairs,
    Runs,
    apply_weights,
    compare_pairs,
    cut_runs,
    group_rounds,
    link_groups,
    read_rounds,
    to_stored_message,
)
from topicloom_app.recordings.replay import as_message
from topicloom_lab.threads import ThreadedConversation

SHIFTS = (0.0, -1.5, 1.5)
"""What is added to the boundary detector's log odds, so that runs come out finer or coarser."""
_PART = 96
"""Rounds that the boundary detector looks back over at once."""
_LEAD = 12
"""Rounds before these that it sees as well."""
Columns = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Example:
    """A conversation, cut into runs, and what is known of its topics."""

    kind: str
    said: MessageColumns
    words: Mapping[str, int]
    voices: Mapping[str, int]
    gold: Mapping[int, str | None]
    """The topic of each message by its number; None where it is not known."""

    def cut(self, shift: float = 0.0) -> Runs:
        """Its runs."""
        said = replace(self.said, continues=self.said.continues + shift)
        return cut_runs(said, self.words, self.voices)

    def label(self, runs: Runs) -> list[str | None]:
        """The commonest known topic of each run."""
        found: list[str | None] = []
        for first, last in zip(runs.first.tolist(), runs.last.tolist(), strict=True):
            held = Counter(self.gold[n] for n in range(first, last + 1) if n in self.gold)
            found.append(held.most_common(1)[0][0] if held else None)
        return found


def prepare(
    kind: str, conversation: ThreadedConversation, embedder: Embedder, adsorber: Adsorber
) -> Example:
    """Read a conversation as a session would."""
    pairs = zip(conversation.recorded(), conversation.messages, strict=True)
    kept = [(recorded, message) for recorded, message in pairs if recorded.text.strip()]
    stored = [
        to_stored_message(as_message(recorded), seq=number, time=recorded.time or "")
        for number, (recorded, _) in enumerate(kept, 1)
    ]
    gold = {number: message.thread for number, (_, message) in enumerate(kept, 1)}
    rounds = group_rounds(stored)
    odds = list[float]()
    for begin in range(0, len(rounds), _PART):
        lead = max(0, begin - _LEAD)
        odds += adsorber.continuity(rounds[lead : begin + _PART])[begin - lead :]
    words, voices = Codes(), Codes()
    said = read_rounds(rounds, odds, embedder, words, voices)
    return Example(kind, said, words, voices, gold)


def list_columns(pairs: Pairs) -> Columns:
    """Columns of pairs [..., 9], one for each weight but the level, in their order."""
    alike, words, length = pairs.likeness, pairs.words, pairs.length
    others = (pairs.distance, pairs.continues, pairs.adjacent, pairs.sitting, pairs.speakers)
    return np.stack([alike, words, alike * length, words * length, *others], axis=-1)


def sample_pairs(example: Example, shift: float) -> tuple[Columns, NDArray[np.bool_]]:
    """Columns of all pairs of runs whose topics are told apart, and if they are of one topic."""
    runs = example.cut(shift)
    labels = np.array([label or "" for label in example.label(runs)])
    columns = list_columns(compare_pairs(runs, np.arange(len(runs))))
    one, other = np.triu_indices(len(runs), 1)
    told = (labels[one] != "") | (labels[other] != "")
    return columns[one, other][told], (labels[one] == labels[other])[told]


def fit_weights(
    examples: Sequence[Example],
    shares: Mapping[str, float],
    level: float,
    shifts: Sequence[float] = SHIFTS,
) -> BelongingWeights:
    """The weights of a logistic regression over all pairs; `beginning` is not fitted.

    Args:
        shares: How much each kind counts.
        level: What is added to the fitted level: a mean over pairs is joined more readily.
    """
    from sklearn.linear_model import LogisticRegression

    columns, same, weight = list[Columns](), list[NDArray[np.bool_]](), list[Columns]()
    for kind, share in shares.items():
        own = [sample_pairs(e, shift) for e in examples if e.kind == kind for shift in shifts]
        total = sum(len(found) for _, found in own)
        for found, truth in own:
            columns.append(found)
            same.append(truth)
            weight.append(np.full(len(truth), share * 1000 / total))
    model = LogisticRegression(C=1.0, max_iter=500)
    model.fit(np.concatenate(columns), np.concatenate(same), np.concatenate(weight))
    values = [*model.coef_[0].tolist(), float(model.intercept_[0]) + level]
    names = [f.name for f in fields(BelongingWeights) if f.name != "beginning"]
    return BelongingWeights(**dict(zip(names, values, strict=True)))


def judge(example: Example, weights: BelongingWeights) -> tuple[float, float]:
    """ARI of the runs of a whole conversation grouped at once, and purity of topics of 20 and more.

    Both are over the messages whose topic is known.
    """
    from sklearn.metrics import adjusted_rand_score

    runs = example.cut()
    odds = apply_weights(compare_pairs(runs, np.arange(len(runs))), weights)
    groups = link_groups(odds, [1] * len(runs), [False] * len(runs))
    spans = list(zip(runs.first.tolist(), runs.last.tolist(), strict=True))
    pairs = [
        (example.gold[n], group)
        for (first, last), group in zip(spans, groups, strict=True)
        for n in range(first, last + 1)
        if n in example.gold
    ]
    sizes = Counter(group for _, group in pairs)
    known = [(gold, group) for gold, group in pairs if gold is not None]
    large = [(gold, group) for gold, group in known if sizes[group] >= 20]
    held: dict[int, Counter[str]] = {}
    for gold, group in large:
        held.setdefault(group, Counter())[gold] += 1
    pure = sum(found.most_common(1)[0][1] for found in held.values())
    ari = float(adjusted_rand_score(*zip(*known, strict=True)))
    return ari, pure / len(large) if large else 1.0
