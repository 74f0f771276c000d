"""Choosing from which probability on a topic begins.

What a topic is differs: some files change it every three messages, others every six. `auto` is the
best compromise over all of them, `fine` is what does best on the finer half of the files, `coarse`
on the coarser half, by messages per segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.boundary.policy import Thresholds
from topicloom_lab.segmentation import boundaries, measures_of_each, score
from topicloom_lab.training.corpus import Sample

GRID = tuple(round(0.1 + 0.025 * step, 3) for step in range(25))
"""Thresholds to choose among."""

Used = NDArray[np.bool_]
"""The dialogues that count."""


@dataclass(frozen=True, slots=True)
class Trials:
    """The scores of every threshold of `GRID` on every dialogue."""

    files: NDArray[np.str_]
    """File of each dialogue [dialogues]."""
    scores: NDArray[np.float64]
    """Score of each [thresholds, dialogues]."""
    messages: NDArray[np.int64]
    """Messages in each dialogue [dialogues]."""
    segments: NDArray[np.int64]
    """Segments in each [dialogues]."""

    @classmethod
    def of(cls, samples: Sequence[Sample], probabilities: Sequence[NDArray[np.float64]]) -> Trials:
        """Try all thresholds, on the probabilities of a model that was not fitted on the sample."""
        dialogues = [sample.dialogue for sample in samples]
        scores = [
            score(measures_of_each(dialogues, [boundaries(p, threshold) for p in probabilities]))
            for threshold in GRID
        ]
        return cls(
            np.array([sample.file for sample in samples]),
            np.array(scores),
            np.array([len(dialogue.utterances) for dialogue in dialogues]),
            np.array([len(dialogue.segments) for dialogue in dialogues]),
        )

    def best(self, used: Used | None = None) -> Thresholds:
        """Thresholds with the highest mean score over files, of the dialogues that count.

        `fine` is for the finer half of the files and at most `auto`, `coarse` for the coarser half
        and at least `auto`; the middle one of an odd number of files is in both halves.
        """
        chosen = np.ones(len(self.files), dtype=np.bool_) if used is None else used
        groups = [chosen & (self.files == file) for file in np.unique(self.files[chosen])]
        groups.sort(key=lambda group: self.messages[group].sum() / self.segments[group].sum())
        by_file = np.array([self.scores[:, group].mean(axis=1) for group in groups])
        half = (len(groups) + 1) // 2
        auto = int(np.argmax(by_file.mean(axis=0)))
        fine = int(np.argmax(by_file[:half].mean(axis=0)[: auto + 1]))
        coarse = auto + int(np.argmax(by_file[-half:].mean(axis=0)[auto:]))
        return Thresholds(auto=GRID[auto], fine=GRID[fine], coarse=GRID[coarse])
