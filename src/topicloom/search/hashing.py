"""A sentence encoder without a model: hashed character and word n-grams.

It sees shared wording, not meaning. For Chinese, Japanese and Korean, which the bundled model
barely reads, it tells paraphrases apart better than that model; for other scripts it is the
fallback that needs no file. Features are:

- characters and character pairs of CJK text,
- words, and character triples within them, of everything else.

Each feature adds its weight, times a sign, to one column; both come from a 64-bit hash that is the
same in every process. A whole batch is one sequence of numpy operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from topicloom.search.embedder import Vectors, unit_rows
from topicloom.state.folding import fold
from topicloom.state.language import CJK_RANGES

VERSION = 1
"""Raise it with any change to features, weights or hash."""

Codes = NDArray[np.uint64]
"""Code points, or hashes of them."""
Rows = NDArray[np.int64]
"""Index of the text that each feature comes from."""
Weights = NDArray[np.float64]

SPACE = 32
NOT_WORD = regex.compile(r"[\W_]+")
MAX_CHARACTERS = 16_384
"""Characters read of one text."""
CHUNK_TEXTS, CHUNK_CHARACTERS = 1024, 131_072
"""Most texts, and about the most characters, in one go; they bound the temporary arrays to about
50 MB."""

PAIR_WEIGHT = 0.7
"""Of two adjacent CJK characters, against 1 for a character, a word or a triple."""

FUNCTION_WEIGHT = 0.5
FUNCTION_CHARACTERS = (
    "的了是我你他她它们这那有在不吗呢吧啊呀哦嗯就也都和与及还很"
    "要会能可以个一么什怎哪谁为给把被让对到去来说"
)
"""Chinese characters that say little about the subject and count half."""
FUNCTION_CODES = np.array(sorted(map(ord, FUNCTION_CHARACTERS)), dtype=np.uint64)
CJK_EDGES = np.array(
    [edge for low, high in CJK_RANGES for edge in (low, high + 1)], dtype=np.uint64
)

BITS = np.uint64(21)
"""Room for one code point where several are packed into one integer."""


class HashedFeatures(NamedTuple):
    """Occurrences of features: the text, the hash and the weight of each."""

    rows: Rows
    hashes: Codes
    weights: Weights


class HashingEmbedder:
    """`Embedder` over shared characters and words; tens of thousands of short texts a second."""

    def __init__(self, dimension: int = 512) -> None:
        """Raises ValueError if there is no column."""
        if dimension < 1:
            raise ValueError(f"need at least 1 column, got {dimension=}")
        self.dimension = dimension
        self.fingerprint = f"character-hashing-{VERSION}-{dimension}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for chunk in _chunks(texts):
            vectors[chunk] = self._embed_chunk(texts[chunk])
        return vectors

    def _embed_chunk(self, texts: Sequence[str]) -> Vectors:
        features = _distinct(_features(texts))
        columns = (features.hashes >> np.uint64(1)) % np.uint64(self.dimension)
        signs = np.where(features.hashes & np.uint64(1), 1.0, -1.0)
        cells = features.rows * self.dimension + columns.astype(np.int64)
        size = len(texts) * self.dimension
        total = np.bincount(cells, signs * features.weights, minlength=size)
        return unit_rows(total.reshape(len(texts), self.dimension).astype(np.float32))


def _chunks(texts: Sequence[str]) -> Iterator[slice]:
    """Consecutive slices of the texts within the two chunk limits."""
    start = characters = 0
    for stop, text in enumerate(texts):
        if stop - start == CHUNK_TEXTS or characters > CHUNK_CHARACTERS:
            yield slice(start, stop)
            start, characters = stop, 0
        characters += min(len(text), MAX_CHARACTERS)
    if texts:
        yield slice(start, len(texts))


def _distinct(features: HashedFeatures) -> HashedFeatures:
    """Each feature of a text once, its weight times 1 + ln(count).

    The tenth repetition of a word says less than the first.
    """
    order = np.lexsort((features.hashes, features.rows))
    rows, hashes = features.rows[order], features.hashes[order]
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = (rows[1:] != rows[:-1]) | (hashes[1:] != hashes[:-1])
    starts = np.flatnonzero(fresh)
    counts = np.diff(starts, append=len(rows))
    weights = features.weights[order][starts] * (1 + np.log(counts))
    return HashedFeatures(rows[starts], hashes[starts], weights)


def _features(texts: Sequence[str]) -> HashedFeatures:
    """All characters, pairs, words and triples of the texts, with repetitions."""
    parts = [_clean(text) for text in texts]
    rows = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    encoded = "".join(parts).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(encoded, dtype="<u4").astype(np.uint64)
    cjk = _is_cjk(codes)
    others = np.where(cjk, np.uint64(SPACE), codes)
    kinds = (
        _characters(rows, codes, cjk),
        _pairs(rows, codes, cjk),
        _words(rows, others),
        _triples(rows, others),
    )
    return HashedFeatures(
        np.concatenate([kind.rows for kind in kinds]),
        np.concatenate([kind.hashes for kind in kinds]),
        np.concatenate([kind.weights for kind in kinds]),
    )


def _characters(rows: Rows, codes: Codes, cjk: NDArray[np.bool_]) -> HashedFeatures:
    return HashedFeatures(rows[cjk], _mix(codes[cjk], 1), _character_weights(codes[cjk]))


def _pairs(rows: Rows, codes: Codes, cjk: NDArray[np.bool_]) -> HashedFeatures:
    """The pairs of adjacent CJK characters, weighted by the geometric mean of the two."""
    first = np.flatnonzero(cjk[:-1] & cjk[1:])
    left, right = codes[first], codes[first + 1]
    weights = np.sqrt(_character_weights(left) * _character_weights(right))
    return HashedFeatures(rows[first], _mix(left << BITS | right, 2), PAIR_WEIGHT * weights)


def _words(rows: Rows, codes: Codes) -> HashedFeatures:
    """The maximal runs of non-spaces; the hash sums its characters', each mixed with its place."""
    places = np.flatnonzero(codes != SPACE)
    first = np.flatnonzero(np.diff(places, prepend=-1) > 1)
    if not len(places):
        return HashedFeatures(rows[:0], codes[:0], np.zeros(0))
    lengths = np.diff(first, append=len(places))
    within = np.arange(len(places)) - np.repeat(first, lengths)
    mixed = _mix(within.astype(np.uint64) << BITS | codes[places], 3)
    hashes = np.add.reduceat(mixed, first)
    return HashedFeatures(rows[places[first]], _mix(hashes, 3), np.ones(len(first)))


def _triples(rows: Rows, codes: Codes) -> HashedFeatures:
    """The character triples of words, the space before and after a word included."""
    middle = np.flatnonzero(codes != SPACE)
    packed = (codes[middle - 1] << BITS | codes[middle]) << BITS | codes[middle + 1]
    return HashedFeatures(rows[middle], _mix(packed, 4), np.ones(len(middle)))


def _character_weights(codes: Codes) -> Weights:
    return np.where(np.isin(codes, FUNCTION_CODES), FUNCTION_WEIGHT, 1.0)


def _clean(text: str) -> str:
    """Fold a text, punctuation too; a space at either end keeps texts apart."""
    return f" {NOT_WORD.sub(' ', fold(text[:MAX_CHARACTERS]))} "


def _is_cjk(codes: Codes) -> NDArray[np.bool_]:
    """True for code points that lie in `CJK_RANGES`: those after an odd number of range edges."""
    return np.asarray(np.searchsorted(CJK_EDGES, codes, side="right") % 2 == 1, dtype=np.bool_)


def _mix(values: Codes, salt: int) -> Codes:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014) over `values` plus a salt."""
    mixed = values + np.uint64(salt * 0x9E3779B97F4A7C15 % 2**64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
