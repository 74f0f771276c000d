"""Words that tell subjects apart: a learned place for each, so that "actor" is near "film"."""

from __future__ import annotations

from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from topicloom.index.words import words_of

COLUMNS = 1 << 14
"""Words are told apart by a hash with this many values: what counts them never grows."""

Columns = NDArray[np.int64]
"""Hashes of the distinct words of a text, ascending, under `COLUMNS`."""
Gist = NDArray[np.float32]
"""Where the words of a text lie in the lexicon's space [k]: unit length, or zero."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """A vector for each word that was frequent in training.

    Hashed wording sees that two texts share a word, not that their words belong to one subject,
    and the bundled encoder barely reads Chinese: this is the small part of meaning that both miss.
    """

    columns: Columns
    """Hashes of its words [w], ascending."""
    table: NDArray[np.float32]
    """Their vectors [w, k]; a longer one says more about the subject."""
    _row: NDArray[np.int32] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        row = np.full(COLUMNS, -1, dtype=np.int32)
        row[self.columns] = np.arange(len(self.columns))
        object.__setattr__(self, "_row", row)

    def gist(self, words: Columns) -> Gist:
        """Direction of the sum of the words' vectors."""
        rows = self._row[words]
        return unit(self.table[rows[rows >= 0]].sum(axis=0))


def columns_of(text: str) -> Columns:
    """Hashes of the distinct words of a text."""
    found = {crc32(word.encode("utf-8", "surrogatepass")) % COLUMNS for word in words_of(text)}
    return np.array(sorted(found), dtype=np.int64)


def unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """A vector [d] at unit length; zero stays zero."""
    length = float(np.sqrt(vector @ vector))
    return np.asarray(vector / length if length > 0 else vector, dtype=np.float32)
