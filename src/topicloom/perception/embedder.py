"""The contract of a sentence encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""One row per text; the rows have unit length or are zero."""


class Embedder(Protocol):
    """Turns texts into vectors whose dot product is a similarity.

    Implementations are deterministic across processes and safe to call from several threads.
    """

    @property
    def fingerprint(self) -> str:
        """Name and version of the vector space; vectors of two fingerprints never mix."""
        ...

    @property
    def dimension(self) -> int:
        """Number of columns."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed each text on its own.

        Args:
            texts: Any strings; a text with nothing to embed, such as "", gives a zero row.

        Returns:
            Array [len(texts), dimension] that the caller may keep and change.
        """
        ...


def unit_rows(vectors: Vectors) -> Vectors:
    """Scale rows [n, d] to unit length; zero rows stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    return np.asarray(vectors / lengths, dtype=np.float32)
