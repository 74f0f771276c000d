"""Learning where words lie: latent semantic analysis, then tuned to tell subjects apart."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topicloom.perception.rejoin.lexicon import COLUMNS, Columns, Lexicon, columns_of
from topicloom.training.rejoin_corpus import Dialogue

_MOST_TURNS = 24
"""Turns of a dialogue that tuning looks at."""
_LEAST_DIALOGUES, _MOST_SHARE = 6, 0.3
"""Fewest dialogues that hold a word, and the largest share of those in its script."""


@dataclass(frozen=True, slots=True)
class LexiconRecipe:
    """How a lexicon is learned; one recipe serves all files."""

    words: int = 3_000
    """Words at most."""
    dimension: int = 24
    """Numbers a word."""
    epochs: int = 6
    """Passes over the dialogues."""
    group: int = 8
    """Dialogues that are told apart at once."""
    rate: float = 0.02
    """Step of Adam at the beginning; it falls to 0."""
    sharpness: float = 8.0
    """Factor on the cosines before the softmax."""
    dropped: float = 0.2
    """Share of words that are left out at random."""
    pull: float = 1e-4
    """Pull back to where the analysis put a word."""
    cjk: float = 0.4
    """Share of groups in CJK script, where there are both."""


def learn_lexicon(
    dialogues: Sequence[Dialogue], recipe: LexiconRecipe | None = None, *, seed: int = 0
) -> Lexicon:
    """Learn from dialogues, each of them about one subject.

    Scripts count alike in the analysis, however many dialogues each has.
    """
    recipe = recipe or LexiconRecipe()
    first = _analysed(dialogues, recipe)
    return _tuned(dialogues, first, recipe, seed) if len(first.columns) else first


def _analysed(dialogues: Sequence[Dialogue], recipe: LexiconRecipe) -> Lexicon:
    """Truncated singular value decomposition of weighted word counts (Deerwester et al. 1990)."""
    sparse, linalg = import_module("scipy.sparse"), import_module("scipy.sparse.linalg")
    counts = [Counter(w for text in d.texts for w in _words(text).tolist()) for d in dialogues]
    scripts = np.array([int(dialogue.cjk) for dialogue in dialogues])
    sizes = np.maximum(np.bincount(scripts, minlength=2), 1)
    held = np.zeros((2, COLUMNS))
    for script, count in zip(scripts, counts, strict=True):
        held[script, list(count)] += 1
    share = (held / sizes[:, None]).max(axis=0)
    usable = (held.sum(axis=0) >= _LEAST_DIALOGUES) & (share < _MOST_SHARE)
    ranked = np.argsort(-np.where(usable, share, 0), kind="stable")[: recipe.words]
    columns = np.sort(ranked[usable[ranked]]).astype(np.int64)
    rank = min(recipe.dimension, len(columns) - 1, len(dialogues) - 1)
    if rank < 1:
        return Lexicon(np.zeros(0, dtype=np.int64), np.zeros((0, recipe.dimension), np.float32))
    rare = -np.log(share[columns])
    table = sparse.lil_matrix((len(dialogues), COLUMNS))
    for row, count in enumerate(counts):
        table[row, list(count)] = [1 + np.log(times) for times in count.values()]
    weighted = table.tocsr()[:, columns].multiply(rare[None]).tocsr()
    lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    balance = np.sqrt(0.5 / sizes[scripts]) / np.maximum(lengths, 1e-6)
    start = np.random.default_rng(0).standard_normal(min(weighted.shape))
    _, values, right = linalg.svds(sparse.diags(balance) @ weighted, k=rank, v0=start)
    found = np.zeros((len(columns), recipe.dimension))
    found[:, :rank] = right[np.argsort(-values)].T * rare[:, None]
    return Lexicon(columns, found.astype(np.float32))


def _tuned(
    dialogues: Sequence[Dialogue], lexicon: Lexicon, recipe: LexiconRecipe, seed: int
) -> Lexicon:
    """Move words so that a turn is nearest to the rest of its own dialogue among a group."""
    rows = np.full(COLUMNS, -1, dtype=np.int64)
    rows[lexicon.columns] = np.arange(len(lexicon.columns))
    pools = _pools(dialogues, rows)
    random = np.random.default_rng(seed)
    start = lexicon.table / np.sqrt((lexicon.table**2).sum(axis=1).mean())
    steps = recipe.epochs * max(1, sum(map(len, pools.values())) // recipe.group)
    adam = Adam([start.astype(np.float32)], recipe.rate)
    for step in range(steps):
        pool = _pool(pools, recipe, random)
        picked = random.permutation(len(pool))[: recipe.group]
        table, owners = _group([pool[i] for i in picked], len(start), recipe.dropped, random)
        gradient = _gradient(table, owners, adam.values[0], recipe.sharpness)
        adam.step([gradient + recipe.pull * (adam.values[0] - start)], 1 - step / steps)
    return Lexicon(lexicon.columns, adam.values[0].astype(np.float32))


Turns = list[NDArray[np.int64]]
"""Rows of the lexicon that each turn of a dialogue holds."""


def _pools(
    dialogues: Sequence[Dialogue], rows: NDArray[np.int64]
) -> dict[tuple[bool, str], list[Turns]]:
    """Dialogues of three turns or more that the lexicon knows, by script and file."""
    pools: defaultdict[tuple[bool, str], list[Turns]] = defaultdict(list)
    for dialogue in dialogues:
        turns = [rows[_words(text)] for text in dialogue.texts[:_MOST_TURNS]]
        known = [turn[turn >= 0] for turn in turns if (turn >= 0).any()]
        if len(known) >= 3:
            pools[dialogue.cjk, dialogue.file].append(known)
    return {key: pools[key] for key in sorted(pools)}


def _pool(
    pools: dict[tuple[bool, str], list[Turns]],
    recipe: LexiconRecipe,
    random: np.random.Generator,
) -> list[Turns]:
    """Dialogues of one script to draw a group from: half the time all, else those of one file."""
    scripts = sorted({cjk for cjk, _ in pools})
    script = scripts[int(random.random() < recipe.cjk)] if len(scripts) > 1 else scripts[0]
    keys = [key for key in pools if key[0] == script]
    if script or random.random() > 0.5:
        return [turns for key in keys for turns in pools[key]]
    chances = np.sqrt([len(pools[key]) for key in keys])
    return pools[keys[random.choice(len(keys), p=chances / chances.sum())]]


def _group(
    dialogues: Sequence[Turns], words: int, dropped: float, random: np.random.Generator
) -> tuple[Any, NDArray[np.int64]]:
    """Which words are in each turn [n, w], sparse, and which dialogue each turn is of [n]."""
    sparse = import_module("scipy.sparse")
    turns: list[NDArray[np.int64]] = []
    owners: list[int] = []
    for owner, dialogue in enumerate(dialogues):
        for turn in dialogue:
            kept = turn[random.random(len(turn)) >= dropped]
            turns.append(kept if len(kept) else turn)
            owners.append(owner)
    at = np.repeat(np.arange(len(turns)), [len(turn) for turn in turns])
    ones = np.ones(len(at), dtype=np.float32)
    shape = (len(turns), words)
    return sparse.csr_matrix((ones, (at, np.concatenate(turns))), shape=shape), np.array(owners)


def _gradient(
    table: Any, owners: NDArray[np.int64], vectors: NDArray[np.float32], sharpness: float
) -> NDArray[np.float32]:
    """Gradient [w, k] of the mean cross entropy of each turn's dialogue among the group.

    A turn is compared by cosine with the sum of the other turns' directions in each dialogue.
    """
    summed = table @ vectors
    lengths = np.sqrt((summed**2).sum(axis=1, keepdims=True)) + 1e-6
    turns = summed / lengths
    places = np.arange(len(owners))
    own = np.zeros((len(owners), owners.max() + 1), dtype=np.float32)
    own[places, owners] = 1
    rest = np.repeat((own.T @ turns)[None], len(owners), axis=0)
    rest[places, owners] -= turns
    spans = np.sqrt((rest**2).sum(axis=2, keepdims=True)) + 1e-3
    subjects = rest / spans
    cosines = np.einsum("nsk,nk->ns", subjects, turns)
    odds = np.exp(sharpness * (cosines - cosines.max(axis=1, keepdims=True)))
    wrong = (odds / odds.sum(axis=1, keepdims=True) - own) * sharpness / len(owners)
    by_rest = wrong[..., None] * (turns[:, None] - subjects * cosines[..., None]) / spans
    by_turn = np.einsum("ns,nsk->nk", wrong, subjects)
    by_turn += own @ by_rest.sum(axis=0) - by_rest[places, owners]
    by_sum = (by_turn - turns * (by_turn * turns).sum(axis=1, keepdims=True)) / lengths
    return np.asarray(table.T @ by_sum, dtype=np.float32)


class Adam:
    """Adam (Kingma and Ba 2015) over a list of arrays."""

    def __init__(self, values: Sequence[NDArray[np.float32]], rate: float) -> None:
        self.values = list(values)
        """The arrays as they stand."""
        self._rate = rate
        self._means = [np.zeros_like(value) for value in values]
        self._squares = [np.zeros_like(value) for value in values]
        self._steps = 0

    def step(self, gradients: Sequence[NDArray[np.float32]], share: float) -> None:
        """Step down the gradients at a share of the rate."""
        self._steps += 1
        fast, slow = 1 - 0.9**self._steps, 1 - 0.99**self._steps
        for i, gradient in enumerate(gradients):
            self._means[i] = 0.9 * self._means[i] + 0.1 * gradient
            self._squares[i] = 0.99 * self._squares[i] + 0.01 * gradient**2
            move = (self._means[i] / fast) / (np.sqrt(self._squares[i] / slow) + 1e-6)
            self.values[i] = (self.values[i] - self._rate * share * move).astype(np.float32)


@lru_cache(maxsize=200_000)
def _words(text: str) -> Columns:
    return columns_of(text)
