"""The linear map of the channel `learned`: what differs between topics, not within them.

Linear discriminant analysis over segments: messages of one segment differ in who asks and how, and
neighbouring segments of one dialogue differ in what they are about. The map keeps the directions
with the largest ratio of the second to the first and scales the first to one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from topicloom_lab.training.corpus import Sample

DIRECTIONS = 32
"""Columns of the map. Chosen for the size of the weights, between 24 and 96 that were compared:
which of those separated segments better differed from file to file."""
SHRINKAGE = 0.2
"""Of the mean variance within segments, added to all. Chosen between 0.1 and 0.5 that were
compared, with 2, which was worse for CJK text."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """Sums of squares within and between segments."""

    within: NDArray[np.float64]
    """Of messages less the mean of their segment [d, d]."""
    messages: int
    between: NDArray[np.float64]
    """Of the differences of the means of neighbouring segments [d, d]."""
    pairs: int


Cell = tuple[str, int]
"""A file and a fold of it."""


def scatters(samples: Sequence[Sample], without: Collection[str]) -> dict[Cell, Scatter]:
    """Scatter of every file and fold, of all segments but those in `without`."""
    cells = sorted({(sample.file, sample.fold) for sample in samples})
    return {
        cell: _scatter([s for s in samples if (s.file, s.fold) == cell], without) for cell in cells
    }


def _scatter(samples: Sequence[Sample], without: Collection[str]) -> Scatter:
    dimension = samples[0].vectors.shape[1]
    within: list[NDArray[np.float32]] = [np.zeros((0, dimension), dtype=np.float32)]
    between: list[NDArray[np.float32]] = []
    for sample in samples:
        parts = np.split(sample.vectors, np.flatnonzero(sample.begins)[1:])
        used = [segment not in without for segment in sample.segments]
        means = [part.mean(axis=0) for part in parts]
        within += [part - m for part, m, use in zip(parts, means, used, strict=True) if use]
        pairs = pairwise(zip(means, used, strict=True))
        between += [a - b for (a, use_a), (b, use_b) in pairs if use_a and use_b]
    inside = np.concatenate(within)
    across = np.array(between, dtype=np.float32).reshape(-1, dimension)
    squares = [(rows.T @ rows).astype(np.float64) for rows in (inside, across)]
    return Scatter(squares[0], len(inside), squares[1], len(across))


def fit_projection(
    cells: dict[Cell, Scatter], files: Collection[str], folds: Collection[int]
) -> NDArray[np.float32]:
    """The map [d, `DIRECTIONS`] from the cells of some files and folds; every file counts alike."""
    from scipy.linalg import eigh

    size = next(iter(cells.values())).within.shape[0]
    inside, across = np.zeros((size, size)), np.zeros((size, size))
    for file in files:
        own = [cell for (name, fold), cell in cells.items() if name == file and fold in folds]
        for cell in own:
            inside += cell.within / max(sum(c.messages for c in own), 1)
            across += cell.between / max(sum(c.pairs for c in own), 1)
    ridge = SHRINKAGE * np.trace(inside) / size + 1e-9
    count = min(DIRECTIONS, size)
    _, directions = eigh(
        across, inside + ridge * np.eye(size), subset_by_index=(size - count, size - 1)
    )
    # The sign of a direction is free: fixed here, so that equal data gives equal weights.
    strongest = np.abs(directions).argmax(axis=0)
    return np.asarray(
        directions * np.sign(directions[strongest, np.arange(count)]), dtype=np.float32
    )
