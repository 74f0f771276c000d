"""Arrays that grow row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class GrowingRows:
    """Rows of one shape. Adding takes time by what is added, not by what is there."""

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        """Args:
        shape: Of one row.
        dtype: Of its elements.
        """
        self._held: NDArray[Any] = np.zeros((0, *shape), dtype=dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def all(self) -> NDArray[Any]:
        """The rows [n, ...]; a view, good until some are added."""
        return self._held[: self._count]

    def extend(self, rows: NDArray[Any]) -> None:
        """Add rows [k, ...] at the end."""
        count = self._count + len(rows)
        if count > len(self._held):
            # By half: at most a third of the memory is waiting to be filled.
            held = np.zeros((count + count // 2, *self._held.shape[1:]), dtype=self._held.dtype)
            held[: self._count] = self.all
            self._held = held
        self._held[self._count : count] = rows
        self._count = count

    def cut(self, count: int) -> None:
        """Leave the first `count` rows."""
        self._count = min(count, self._count)
