"""Fitting the nets that score open topics and a new one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from topicloom.perception.rejoin.network import Network, Scorer, standardised
from topicloom.training.rejoin_lexicon import Adam
from topicloom.training.rejoin_walk import Example

_LEAST_SPREAD = 0.05
"""Put to the standard deviation of a feature: one that hardly varies must not shout."""

Floats = NDArray[np.float32]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NetworkRecipe:
    """How nets are fitted; one recipe serves all files."""

    nets: int = 6
    """Nets that are averaged."""
    hidden: int = 24
    """Hidden units of each half of a net."""
    epochs: tuple[int, ...] = (4, 10)
    """Passes over the decisions in each round: those of a teacher, then also those of its own."""
    batch: int = 256
    """Decisions a step."""
    rate: float = 4e-3
    """Step of Adam after a short rise; it falls to 0."""
    decay: float = 1e-4
    """L2 penalty."""
    balance: float = 1.0
    """Power of a kind's size that its decisions are divided by: 1 makes kinds count alike."""
    most_topics: int = 20
    """Topics of a decision that are learned from: those used last, and the right one."""


@dataclass(frozen=True, slots=True)
class _Table:
    """All decisions: topics of one after the other."""

    topics: Floats
    """Features of topics [rows, p], raw, later standardised."""
    blocks: Floats
    """Features of blocks [m, a], raw, later standardised."""
    starts: Places
    """First row of each decision [m]."""
    counts: Places
    """Topics of each [m]."""
    targets: Places
    """Right topic of each [m]; `counts` for a new one."""
    weights: Floats
    """Weight of each [m], 1 on average."""


def fit_network(
    examples: Sequence[Example],
    recipe: NetworkRecipe | None = None,
    *,
    seed: int = 0,
    epochs: int | None = None,
) -> Network:
    """Fit nets to decisions, at least one; `epochs` None passes over them as in the last round."""
    recipe = recipe or NetworkRecipe()
    names = examples[0].features.pair_names, examples[0].features.alone_names
    table = _table(examples, recipe)
    by_topic = np.repeat((table.weights / table.counts).astype(np.float32), table.counts)
    topic, block = _moments(table.topics, by_topic), _moments(table.blocks, table.weights)
    scaled = replace(
        table,
        topics=standardised(table.topics, *topic),
        blocks=standardised(table.blocks, *block),
    )
    values = _fit(scaled, recipe, seed, epochs or recipe.epochs[-1])
    # What a block brings is measured over blocks, wherever it is read.
    mean, spread = (np.concatenate(both) for both in zip(topic, block, strict=True))
    return Network(
        *names,
        topic=Scorer(mean, spread, *_by_net(values[:3])),
        new=Scorer(*block, *_by_net(values[3:])),
    )


def _table(examples: Sequence[Example], recipe: NetworkRecipe) -> _Table:
    sizes = Counter(example.kind for example in examples)
    weights = np.array([sizes[e.kind] ** -recipe.balance for e in examples], dtype=np.float32)
    gap = examples[0].features.pair_names.index("gap")
    topics: list[Floats] = []
    targets: list[int] = []
    for example in examples:
        pairs, target = example.features.pairs, example.target
        kept = np.argsort(pairs[:, gap], kind="stable")[: recipe.most_topics]
        if target < len(pairs) and target not in kept:
            kept[-1] = target
        at = np.flatnonzero(kept == target)
        targets.append(int(at[0]) if len(at) else len(kept))
        topics.append(pairs[kept])
    counts = np.array([len(rows) for rows in topics])
    return _Table(
        topics=np.concatenate(topics),
        blocks=np.stack([example.features.alone for example in examples]),
        starts=np.cumsum(counts) - counts,
        counts=counts,
        targets=np.array(targets),
        weights=weights / weights.mean(),
    )


def _moments(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted mean and standard deviation [f] of rows [n, f]."""
    shares = (weights / weights.sum()).astype(np.float32)
    mean = shares @ values
    spread = np.sqrt(shares @ (values - mean) ** 2) + _LEAST_SPREAD
    return mean.astype(np.float32), spread.astype(np.float32)


def _fit(table: _Table, recipe: NetworkRecipe, seed: int, epochs: int) -> list[Floats]:
    """Inner, outer and line weights of all nets, for topics and then for a new one.

    Nets begin apart and see the same batches: inner [f + 1, nets * h], outer [nets, h] and line
    [f + 1, nets].
    """
    random = np.random.default_rng(seed)
    alone = table.blocks.shape[1]
    widths = table.topics.shape[1] + alone, alone
    adam = Adam([w for width in widths for w in _start(width, recipe, random)], recipe.rate)
    batches = -(-len(table.counts) // recipe.batch)
    steps = epochs * batches
    for step in range(steps):
        if step % batches == 0:
            order = random.permutation(len(table.counts))
        at = step % batches * recipe.batch
        gradients = _gradients(table, order[at : at + recipe.batch], adam.values)
        decayed = [g + recipe.decay * v for g, v in zip(gradients, adam.values, strict=True)]
        adam.step(decayed, min(1.0, (step + 1) / 100) * (1 - step / steps))
    return adam.values


def _start(width: int, recipe: NetworkRecipe, random: np.random.Generator) -> list[Floats]:
    nets, hidden = recipe.nets, recipe.hidden
    inner = random.normal(0, width**-0.5, (width + 1, nets * hidden))
    inner[-1] = 0
    outer = random.normal(0, 0.3 * hidden**-0.5, (nets, hidden))
    return [a.astype(np.float32) for a in (inner, outer, np.zeros((width + 1, nets)))]


def _by_net(values: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
    """Weights as a `Scorer` has them."""
    inner, outer, line = values
    apart = inner.reshape(len(inner), *outer.shape).transpose(1, 0, 2)
    return apart.copy(), outer, line.T.copy()


def _gradients(table: _Table, picked: Places, values: Sequence[Floats]) -> list[Floats]:
    """Gradients of each net's weighted mean cross entropy of decisions [b], as `values` are."""
    counts = table.counts[picked]
    starts = np.cumsum(counts) - counts
    rows = np.repeat(table.starts[picked] - starts, counts) + np.arange(counts.sum())
    own, blocks = table.topics[rows], table.blocks[picked]
    owners = np.repeat(np.arange(len(picked)), counts)
    hidden, scores = _forward(own, blocks, owners, values[:3])
    everyone = np.arange(len(picked))
    nothing = np.zeros((len(picked), 0), dtype=np.float32)
    hidden_new, new = _forward(nothing, blocks, everyone, values[3:])
    top = np.maximum(np.maximum.reduceat(scores, starts), new)
    odds, odds_new = np.exp(scores - top[owners]), np.exp(new - top)
    total = np.add.reduceat(odds, starts) + odds_new
    wrong, wrong_new = odds / total[owners], odds_new / total
    known = table.targets[picked] < counts
    wrong[(starts + table.targets[picked])[known]] -= 1
    wrong_new[~known] -= 1
    weights = (table.weights[picked] / len(picked)).astype(np.float32)[:, None]
    return [
        *_backward(own, blocks, starts, hidden, wrong * weights[owners], values[1]),
        *_backward(nothing, blocks, everyone, hidden_new, wrong_new * weights, values[4]),
    ]


def _forward(
    own: Floats, blocks: Floats, owners: Places, values: Sequence[Floats]
) -> tuple[Floats, Floats]:
    """Hidden units [n, nets * h] and scores [n, nets] of rows [n] and the blocks they are of."""
    inner, outer, line = values
    split = own.shape[1]
    hidden = (blocks @ inner[split:-1] + inner[-1])[owners]
    hidden += own @ inner[:split]
    np.tanh(hidden, out=hidden)
    bent = np.einsum("rnh,nh->rn", hidden.reshape(-1, *outer.shape), outer)
    return hidden, bent + own @ line[:split] + (blocks @ line[split:-1] + line[-1])[owners]


def _backward(
    own: Floats, blocks: Floats, starts: Places, hidden: Floats, wrong: Floats, outer: Floats
) -> list[Floats]:
    by_net = hidden.reshape(-1, *outer.shape)
    by_outer = np.einsum("rnh,rn->nh", by_net, wrong)
    by_hidden = (wrong[:, :, None] * outer).reshape(hidden.shape)
    by_hidden *= 1 - hidden**2
    sums, straight = np.add.reduceat(by_hidden, starts), np.add.reduceat(wrong, starts)

    def into(by_row: Floats, by_block: Floats) -> Floats:
        parts = [own.T @ by_row, blocks.T @ by_block, by_block.sum(axis=0, keepdims=True)]
        return np.concatenate(parts)

    return [into(by_hidden, sums), by_outer, into(wrong, straight)]
