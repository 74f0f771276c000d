"""From probabilities to boundaries.

A threshold, looking back too: keeping neighbouring boundaries apart, or choosing all of them
together by a dynamic program, did no better out of sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Granularity = Literal["auto", "fine", "coarse"]
"""How fine topics are: `fine` for steps of one errand, `coarse` for topics that last, `auto` for
the best compromise over every kind of dialogue that the model was trained on."""
GRANULARITIES: tuple[Granularity, ...] = get_args(Granularity)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Probabilities from which on a topic begins, by granularity."""

    auto: float
    """Highest mean score over all training files."""
    fine: float
    """Over the finer half of them, by messages per segment; at most `auto`."""
    coarse: float
    """Over the coarser half; at least `auto`."""

    def of(self, granularity: Granularity) -> float:
        """The threshold of a granularity."""
        return {"auto": self.auto, "fine": self.fine, "coarse": self.coarse}[granularity]


def boundaries(probabilities: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Where topics begin [n], each message by itself: what is decided online is never revised."""
    return np.asarray(probabilities >= threshold, dtype=np.bool_)
