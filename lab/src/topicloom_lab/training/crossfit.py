"""Fitting on some dialogues and judging others, without the first knowing the second.

The map of the channel `learned` is fitted too, and what it was fitted on looks better separated
than it is. So the features that the nets are trained on are made with maps that never saw their
dialogue: the training dialogues are taken by folds, each with a map fitted on the other folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.boundary.features import (
    REACH,
    Features,
    following_features,
    gap_features,
    in_cjk,
    message_features,
    similarity_features,
)
from topicloom.boundary.model import NAMES, Network
from topicloom.boundary.similarity import Band, Floats
from topicloom.index.embedder import unit_rows
from topicloom_lab.training.corpus import Corpus, Sample, shared_segments
from topicloom_lab.training.nets import NetRecipe, Rows, fit_network
from topicloom_lab.training.projection import Cell, Scatter, fit_projection, scatters

Probabilities = dict[str, NDArray[np.float64]]
"""Of each mode, probabilities [n] of one dialogue."""


@dataclass(frozen=True, slots=True)
class Known:
    """A dialogue with what does not depend on the map, made once."""

    sample: Sample
    online: Floats
    """Causal features [n, f] of the messages and of the channel `given`."""
    ahead: Floats
    """Features [n, f] that look ahead, of the same."""
    cjk: NDArray[np.bool_]
    """True if each message is CJK text [n]."""

    @classmethod
    def of(cls, sample: Sample) -> Known:
        """Make what can be made without a map."""
        said, given = sample.said, Band.of([unit_rows(sample.vectors)], REACH)
        online = np.hstack([message_features(said), *similarity_features(said, given)])
        ahead = np.hstack([following_features(said), *gap_features(given)])
        return cls(sample, online, ahead, in_cjk(said))

    def features(self, learned: NDArray[np.float32]) -> dict[str, Features]:
        """Features of each mode with a map, in the order of `NAMES`."""
        band = Band.of([unit_rows(self.sample.vectors @ learned)], REACH)
        online = np.hstack([self.online, *similarity_features(self.sample.said, band)])
        whole = np.hstack([online, self.ahead, *gap_features(band)])
        found = {"online": online, "retrospective": whole}
        return {mode: Features(values, self.cjk) for mode, values in found.items()}


@dataclass(frozen=True, slots=True)
class Fitted:
    """A map, and a net a mode."""

    learned: NDArray[np.float32]
    nets: dict[str, Network]

    def probabilities(self, known: Known) -> Probabilities:
        """Probabilities of a dialogue, by mode."""
        features = known.features(self.learned)
        return {mode: net.probabilities(features[mode]) for mode, net in self.nets.items()}


class CrossFit:
    """Fits on any choice of files and folds of a corpus."""

    def __init__(self, corpus: Corpus, recipe: NetRecipe, seed: int) -> None:
        self.known = tuple(Known.of(sample) for sample in corpus.samples)
        """The dialogues, in the order of the corpus."""
        self._files = corpus.files
        self._recipe = recipe
        self._seed = seed
        shared = shared_segments(corpus.samples)
        self._cells: dict[Cell, Scatter] = scatters(corpus.samples, shared)

    def fit(self, train: Sequence[Known], test: Sequence[Known] = ()) -> Fitted:
        """Fit on dialogues.

        Args:
            train: Whole folds of some files.
            test: Dialogues to be judged: training rows whose segment stands in one of them too,
                or that end such a segment, are left out.
        """
        files = sorted({known.sample.file for known in train})
        folds = sorted({known.sample.fold for known in train})
        banned = frozenset(segment for known in test for segment in known.sample.segments)
        rows: list[Rows] = []
        for fold in folds:
            learned = fit_projection(self._cells, files, [f for f in folds if f != fold])
            own = [known for known in train if known.sample.fold == fold]
            rows += [_rows(k, learned, self._files.index(k.sample.file), banned) for k in own]
        joined = Rows(*map(np.concatenate, zip(*rows, strict=True)))
        nets = {}
        for mode, names in NAMES.items():
            # Causal features come first.
            own_rows = joined._replace(values=joined.values[:, : len(names)])
            nets[mode] = fit_network(own_rows, names, self._recipe, self._seed)
        return Fitted(fit_projection(self._cells, files, folds), nets)


def _rows(known: Known, learned: NDArray[np.float32], file: int, banned: frozenset[str]) -> Rows:
    sample = known.sample
    segment_of = sample.segment_of
    seen = np.array([segment in banned for segment in sample.segments])
    before = np.maximum(segment_of - sample.begins, 0)
    kept = ~(seen[segment_of] | seen[before])
    kept[0] = False  # a conversation's first message is no decision
    features = known.features(learned)["retrospective"]
    files = np.full(int(kept.sum()), file, dtype=np.int64)
    return Rows(features.values[kept], features.cjk[kept], sample.begins[kept], files)
