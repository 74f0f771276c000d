"""Fitting the net over the features: what each kind of dialogue shows, and what holds for any.

The log odds are a weighted mean of two sorts of parts. Nets over all features learn each kind of
dialogue that they are shown, and are lost where a kind is new. A logistic regression over a dozen
plain features of the embedder's own cosines, most of them relative to the conversation so far,
never learns a kind as well and loses less where it is new. All parts together are one net.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topicloom.lab import Features, Floats, Matrix, Network, standardise

PLAIN = frozenset(
    {
        *(f"given.{name}" for name in ("max4", "cos3", "max4_before")),
        *(f"given.{name}_z" for name in ("lag1", "max4", "cos3")),
        *(f"given.{name}" for name in ("gap3", "gap4", "gap3_z", "depth2_z", "depth3_z")),
        *(f"given.{name}" for name in ("depth4_z", "depth3_rank", "bridge", "next1")),
        *("side", "novel", "echo", "length.now", "leans.now", "points.now"),
        *("asks.now", "asks.before"),
    }
)
"""Features of the logistic regression, as far as a mode has them."""
_LEAST_SPREAD = 0.05
"""Least standard deviation of a feature: one that hardly varies must not shout."""
_LOGISTIC_COST = 0.01
"""Cost of errors in the logistic regression (`C` of scikit-learn) against its L2 penalty."""


@dataclass(frozen=True, slots=True)
class NetRecipe:
    """The way nets are fitted; one recipe, chosen on the mean over all files, serves all."""

    nets: int = 3
    """Nets over all features that are averaged."""
    hidden: int = 32
    """Hidden units of each."""
    epochs: int = 15
    """Passes over the data."""
    decay: float = 0.5
    """L2 penalty, as scikit-learn counts it."""
    balance: float = 0.5
    """Power of a file's size that its rows are divided by: 0 all rows alike, 1 all files alike."""
    plain: float = 0.4
    """Share of the logistic regression over `PLAIN` features in the log odds."""


class Rows(NamedTuple):
    """Training data: one row a message."""

    values: Floats
    """Features [n, f]."""
    cjk: NDArray[np.bool_]
    """True if the message is CJK text [n]."""
    begins: NDArray[np.bool_]
    """True if a topic begins there [n]."""
    files: NDArray[np.int64]
    """Number of the file that each is from [n]."""


def fit_network(rows: Rows, names: Sequence[str], recipe: NetRecipe, seed: int) -> Network:
    """Fit to rows; the same rows and seed give the same net.

    Args:
        rows: At least one row with and one without a beginning.
        names: Features, in the order of the columns.
        recipe: How.
        seed: Of the first net; the others follow.
    """
    features = Features(rows.values, rows.cjk)
    mean, spread = _scales(features)
    inputs = standardise(features, mean, spread)
    weights = _weights(rows.files, recipe.balance)
    nets = [_net(inputs, rows.begins, weights, recipe, seed + net) for net in range(recipe.nets)]
    plain = np.array([name in PLAIN for name in names])
    regression = _regression(inputs, rows.begins, _weights(rows.files, 1.0), plain)
    each = (1 - recipe.plain) / recipe.nets
    return Network(mean, spread, *mix([*((each, *n) for n in nets), (recipe.plain, *regression)]))


def _net(
    inputs: Matrix, begins: NDArray[np.bool_], weights: Floats, recipe: NetRecipe, seed: int
) -> tuple[Matrix, Matrix]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    net = MLPClassifier(
        (recipe.hidden,),
        alpha=recipe.decay,
        learning_rate_init=2e-3,
        batch_size=min(256, len(inputs)),
        max_iter=recipe.epochs,
        n_iter_no_change=recipe.epochs + 1,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is the limit
        net.fit(inputs, begins, sample_weight=weights)
    inner = np.vstack([net.coefs_[0], net.intercepts_[0]])
    outer = np.append(net.coefs_[1][:, 0], net.intercepts_[1])
    return inner.astype(np.float32), outer.astype(np.float32)


def _regression(
    inputs: Matrix, begins: NDArray[np.bool_], weights: Floats, plain: NDArray[np.bool_]
) -> tuple[Matrix, Matrix]:
    """Logistic regression over some columns, as two hidden units: a sum and what it is below 0."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=_LOGISTIC_COST, max_iter=1_000)
    model.fit(inputs[:, plain], begins, sample_weight=weights)
    line = np.zeros(len(plain) + 1)
    line[:-1][plain] = model.coef_[0]
    inner = np.stack([line, -line], axis=1)
    return inner.astype(np.float32), np.array([1, -1, model.intercept_[0]], dtype=np.float32)


def _scales(features: Features) -> tuple[Matrix, Matrix]:
    """Mean and spread [2, f] of what is known, of other rows and of CJK rows."""
    means, spreads = [], []
    for script in (False, True):
        own = features.values[features.cjk == script]
        chosen = own if len(own) else features.values
        known = ~np.isnan(chosen)
        count = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, chosen, 0).sum(axis=0) / count
        variance = (np.where(known, chosen - mean, 0) ** 2).sum(axis=0) / count
        means.append(mean)
        spreads.append(np.maximum(np.sqrt(variance), _LEAST_SPREAD))
    return np.array(means, dtype=np.float32), np.array(spreads, dtype=np.float32)


def _weights(files: NDArray[np.int64], balance: float) -> Floats:
    counts = np.bincount(files)
    found = (1 / np.maximum(counts, 1) ** balance)[files]
    return np.asarray(found / found.mean(), dtype=np.float64)


def mix(parts: Sequence[tuple[float, Matrix, Matrix]]) -> tuple[Matrix, Matrix]:
    """The inner and outer weights of one net whose log odds are the weighted sum of several's."""
    bias = sum(share * float(outer[-1]) for share, _, outer in parts)
    outer = np.concatenate([*(share * outer[:-1] for share, _, outer in parts), [bias]])
    return np.hstack([inner for _, inner, _ in parts]), outer.astype(np.float32)
