"""Similarities of messages not far apart, and of groups of neighbouring messages.

Looking back is over a bounded number of messages, for all messages of a conversation at once.
`NaN` stands for "there is no such message" all through; the means here pass over it.

Cosines between means of messages need no vectors once the products of the messages are known:
`|a + b + ...|²` is the sum of all products among them. So one pass over the vectors is enough for
windows of every width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.search.embedder import dot_products

Floats = NDArray[np.float64]

_BLOCK = 128
"""Rows whose products are made at once."""
_TINY = 1e-6
"""A length that counts as none; products are rounded to about 1e-7."""

Places = NDArray[np.int64]
SOFT = 0.05
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
    """Distances of values [..., n] from means of earlier ones [..., n, k], in spreads; means."""
    mean = mean_known(past)
    spread = np.sqrt(mean_known((past - mean[..., None]) ** 2) + SOFT**2)
    return (values - mean) / spread, mean


@dataclass(frozen=True, slots=True)
class Band:
    """Products of rows at most some lags apart, in several channels at once."""

    products: Floats
    """`products[c, i, k]` of row i and row i - k [channels, n, reach + 1]; 0 without such a row."""
    sums: Floats
    """Sums of the first 0, 1, ... n rows of `products` [channels, n + 1, reach + 1]."""

    @classmethod
    def of(cls, channels: Sequence[NDArray[np.float32]], reach: int) -> Band:
        """Multiply unit rows [n, d], each with up to `reach` before it; d is each channel's own."""
        count = len(channels[0])
        sums = np.zeros((len(channels), count + 1, reach + 1))
        products = np.empty((len(channels), count, reach + 1))
        for start in range(0, count, _BLOCK):
            first, stop = max(0, start - reach), min(start + _BLOCK, count)
            tables = np.array([dot_products(r[start:stop], r[first:stop]) for r in channels])
            place = np.arange(stop - start)[:, None]
            column = place + (start - first) - np.arange(reach + 1)
            # Columns before the first row are read from anywhere and then struck out.
            found = tables[:, place, column % (stop - first)]
            products[:, start:stop] = found * (column >= 0)
        products.cumsum(axis=1, out=sums[:, 1:])
        return cls(products, sums)

    def before(self, reach: int, first: int = 0) -> Floats:
        """Similarities [channels, n - first, reach] of rows to the rows before them.

        Column `k - 1` is for lag k; NaN where there is no such row. Rows are those from `first` on.
        """
        found = self.products[:, first:, 1 : reach + 1].copy()
        missing = np.arange(first, self.products.shape[1])[:, None] <= np.arange(reach)
        found[:, missing] = np.nan
        return found

    def square(self, start: Places, stop: Places) -> Floats:
        """Squared lengths [channels, ...] of the sums of rows from each `start` to before `stop`.

        No more than reach + 1 rows at a time.
        """
        width = self.sums.shape[2]
        lags = np.arange(int((stop - start).max(initial=1)))
        stop = stop[..., None]
        low = np.minimum(start[..., None] + lags, stop)
        flat = self.sums.reshape(len(self.sums), -1)
        found = flat.take(stop * width + lags, axis=1) - flat.take(low * width + lags, axis=1)
        return np.asarray(2 * found.sum(axis=-1) - found[..., 0], dtype=np.float64)

    def lengths_before(self, widths: Sequence[int], first: int = 0) -> Floats:
        """Lengths [channels, widths, n - first] of the sums of up to `width` rows before each row.

        Rows are those from `first` on. A sum of zero rows counts as 1 long: it has no product with
        anything either.
        """
        place = np.arange(first, self.products.shape[1])
        start = np.maximum(place - np.array(widths)[:, None], 0)
        squares = self.square(start, np.broadcast_to(place, start.shape))
        return np.sqrt(np.where(squares < _TINY**2, 1.0, squares))

    def gap(self, start: Places, middle: Places, stop: Places) -> Gap:
        """Compare the rows before each `middle` with those from it on; all of one shape [...]."""
        edges = np.stack([start, middle, start]), np.stack([middle, stop, stop])
        before, after, both = np.moveaxis(self.square(*edges), 1, 0)
        return Gap(before, after, (both - before - after) / 2, middle - start, stop - middle)


@dataclass(frozen=True, slots=True)
class Gap:
    """Two neighbouring groups of rows, many times over, in several channels."""

    before: Floats
    """Squared length of the sum of the first group [channels, ...]."""
    after: Floats
    """Of the second."""
    across: Floats
    """Product of the two sums."""
    left: Places
    """Rows in the first group [...]."""
    right: Places
    """Rows in the second."""

    @property
    def cosine(self) -> Floats:
        """Cosine of the two means; 0 for groups of zero rows, NaN for an empty group."""
        length = np.sqrt(np.maximum(self.before, 0) * np.maximum(self.after, 0))
        found = np.where(length > _TINY, self.across / np.maximum(length, _TINY), 0.0)
        return np.where((self.left > 0) & (self.right > 0), found, np.nan)

    @property
    def mean_across(self) -> Floats:
        """Mean similarity of a row of the first to one of the second group."""
        return np.asarray(self.across / np.maximum(self.left * self.right, 1), dtype=np.float64)

    @property
    def cohesion(self) -> tuple[Floats, Floats]:
        """Mean similarity within either group less that across; NaN for fewer than two rows."""
        return (
            _mean_pair(self.before, self.left) - self.mean_across,
            _mean_pair(self.after, self.right) - self.mean_across,
        )


def _mean_pair(square: Floats, count: Places) -> Floats:
    """Mean product of two of `count` unit rows whose sum has the squared length `square`."""
    return np.where(count > 1, (square - count) / np.maximum(count * (count - 1), 1), np.nan)
