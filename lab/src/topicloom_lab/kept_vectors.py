"""An encoder whose vectors are kept in a folder, so that several runs need each text once."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from topicloom import Embedder
from topicloom.lab import Vectors


@dataclass
class KeptEmbedder:
    """An encoder whose vectors are kept on disk, each text once; runs may share the folder."""

    encoder: Embedder
    folder: Path
    known: dict[str, Vectors] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        return self.encoder.fingerprint

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def prepare(self, texts: Sequence[str]) -> None:
        """Read the vectors of some texts, or make them; a run that was stopped goes on."""
        wanted = {self._key(text): text for text in texts if text not in self.known}
        with closing(sqlite3.connect(self.folder / "vectors.sqlite", timeout=600)) as kept:
            kept.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, value BLOB)")
            for key in list(wanted):
                for (value,) in kept.execute("SELECT value FROM vectors WHERE key = ?", (key,)):
                    self.known[wanted.pop(key)] = np.frombuffer(value, dtype=np.float32)
            missed = list(wanted.items())
            for part in (missed[i : i + 32] for i in range(0, len(missed), 32)):
                made = self.encoder.embed([text for _, text in part]).astype(np.float32)
                rows = [(key, v.tobytes()) for (key, _), v in zip(part, made, strict=True)]
                with kept:
                    kept.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
                self.known |= zip((text for _, text in part), made, strict=True)

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self.fingerprint}\0{text}".encode()).digest()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts that were prepared."""
        return np.stack([self.known[text] for text in texts])
