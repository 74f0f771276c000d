"""Vectors of stored messages: computed once, kept beside the session."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topicloom.perception.embedder import Embedder, Vectors
from topicloom.storage.base import SessionLog


class StoredVectors:
    """Vectors by the ref of a chain entry, for one embedding space.

    Another embedder has another fingerprint, and so another file: its vectors are made anew.
    """

    def __init__(self, embedder: Embedder, log: SessionLog) -> None:
        self._embedder = embedder
        self._log = log.vectors(embedder.fingerprint)
        self._stored: dict[str, int] | None = None
        self._matrix: Vectors = np.zeros((0, embedder.dimension), dtype=np.float32)

    def of(self, refs: Sequence[str], texts: Sequence[str]) -> Vectors:
        """Vectors [n, d] of entries, embedding and storing those that are new.

        Args:
            refs: Refs [n] of the entries.
            texts: Their texts [n].
        """
        if self._stored is None:
            keys, self._matrix = self._log.load()
            self._stored = {key: row for row, key in enumerate(keys)}
        missing = [i for i, ref in enumerate(refs) if ref not in self._stored]
        found = np.zeros((len(refs), self._embedder.dimension), dtype=np.float32)
        if missing:
            made = self._embedder.embed([texts[i] for i in missing])
            found[missing] = made
            self._log.append([refs[i] for i in missing], made)
        for i, ref in enumerate(refs):
            if ref in self._stored:
                found[i] = self._matrix[self._stored[ref]]
        return found
