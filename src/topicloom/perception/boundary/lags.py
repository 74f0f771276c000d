"""Looking back over a bounded number of messages, for all messages of a conversation at once.

`NaN` stands for "there is no such message" all through; the means here pass over it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_TINY = 1e-9
"""A length that counts as none."""
_SOFT = 0.05
"""Added to spreads of similarities, in cosine: two messages alike must not make a third unique."""


def lagged(values: Floats, reach: int, first: int = 0) -> Floats:
    """Values [..., n - first, reach] before each message from `first` on; `values` are [..., n].

    Column `k - 1` holds `values[..., i - k]`.
    """
    count = values.shape[-1]
    places = np.arange(first, count)[:, None] - np.arange(1, reach + 1)
    found = np.asarray(values.take(np.maximum(places, 0), axis=-1), dtype=np.float64)
    found[..., places < 0] = np.nan
    return found


def mean_known(values: Floats) -> Floats:
    """Mean over the last axis of what is known; NaN where nothing is."""
    known = values == values  # cheaper than isnan and the same
    count = np.add.reduce(known, axis=-1, dtype=np.float64)
    total = np.add.reduce(np.where(known, values, 0.0), axis=-1)
    return np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)


def against_past(values: Floats, past: Floats) -> tuple[Floats, Floats]:
    """Each value [..., n] against earlier values [..., n, k].

    Returns:
        Its distance from their mean in spreads, and their mean.
    """
    mean = mean_known(past)
    spread = np.sqrt(mean_known((past - mean[..., None]) ** 2) + _SOFT**2)
    return (values - mean) / spread, mean


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows [n, d] scaled to unit length; rows of zeros stay."""
    lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows))[:, None]
    return np.asarray(rows / np.where(lengths < _TINY, 1, lengths), dtype=np.float32)
