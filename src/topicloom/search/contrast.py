"""Which of two kinds a message is of, by its nearest examples of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.search.embedder import Vectors, dot_products

NEAREST = 16
"""Examples of a kind that say how near it is."""
_APART = 2.0
"""Spreads between the means of the two kinds, at least: an encoder that shows less cannot tell them
apart."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Examples of two kinds as an encoder sees them."""

    first: Vectors
    """Those of the first kind [n, d]."""
    second: Vectors
    """Those of the second [m, d]."""
    middle: float
    """Where the middle between the kinds lies; from the second kind to the first."""
    half: float
    """Half of the distance between them; 0 if the encoder cannot tell them apart."""
    near: float
    """Cosine of an example with the nearest other one of its kind: the mean."""
    spread: float
    """And the standard deviation."""

    def measure_lean(self, message: Vectors) -> float:
        """The cosine by which a message [d] is nearer to the first kind."""
        near = (nearness(dot_products(rows, message)) for rows in (self.first, self.second))
        return float(next(near) - next(near))

    def place(self, message: Vectors) -> float:
        """The same, 1 where the first kind lies, -1 where the second does.

        0 if they cannot be told apart, or if the message has no vector.
        """
        if not (self.half and message.any()):
            return 0.0
        return (self.measure_lean(message) - self.middle) / self.half


def contrast(first: Vectors, second: Vectors) -> Contrast:
    """The contrast of the vectors of two kinds of messages [n, d], [m, d]."""
    alike = [dot_products(rows, rows) for rows in (first, second)]
    for cosines in alike:
        np.fill_diagonal(cosines, -1)
    across = dot_products(first, second)
    leans = nearness(across.T) - nearness(alike[1]), nearness(alike[0]) - nearness(across)
    low, high = (float(lean.mean()) for lean in leans)
    spread = max(float(lean.std()) for lean in leans)
    apart = high - low >= _APART * spread > 0
    half = (high - low) / 2 if apart else 0.0
    nearest = np.concatenate([cosines.max(axis=1) for cosines in alike])
    return Contrast(
        first, second, (low + high) / 2, half, float(nearest.mean()), float(nearest.std())
    )


def nearness(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean of the `NEAREST` highest of some cosines [..., n] along the last axis."""
    most = cosines.shape[-1] - NEAREST
    return np.asarray(np.partition(cosines, most, axis=-1)[..., most:].mean(axis=-1))
