"""Spreading scores to what stands near by in the conversation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def neighbours(values: Floats, position: Floats, reach: float) -> Floats:
    """Sum over all others, each weighted by `exp(-distance / reach)`.

    Args:
        values: [n, columns].
        position: Ascending places [n], in tokens from the beginning of the conversation.
        reach: Tokens over which the weight falls to 1/e.

    Returns:
        [n, columns]; time is n log n.
    """
    if len(values) < 2:
        return np.zeros_like(values)
    decay = np.exp(-np.diff(position) / reach)
    decay[decay < 1e-12] = 0
    left = _running(np.r_[0, decay], values) - values
    right = _running(np.r_[0, decay[::-1]], values[::-1])[::-1] - values
    return left + right


def _running(decay: Floats, values: Floats) -> Floats:
    """`u[i] = decay[i] * u[i - 1] + values[i]` along the first axis, by doubling."""
    decay, total, step = decay.copy(), values.copy(), 1
    while step < len(total):
        total[step:] += decay[step:, None] * total[:-step]
        decay[step:] *= decay[:-step]
        step *= 2
        if not decay[step:].any():
            break
    return total
