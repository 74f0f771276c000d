"""Vectors of messages and rounds; those of what is stored are made once and kept beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from topicloom.background import defer_exit, submit_daemon
from topicloom.index.embedder import Embedder, Vectors, unit_rows
from topicloom.state.rounds import Round
from topicloom.state.stored_message import StoredMessage
from topicloom.storage.chain import link
from topicloom.storage.log import SessionLog
from topicloom.storage.message_rows import to_row
from topicloom.storage.vectors import made_key

_BEGINNING = 200
"""Characters embedded of a reply: its subject shows in its first lines, and a turn waits."""
_AT_ONCE = 256
"""Messages of an older session that a turn waits for where its encoder is another one now."""
_PART = 32
"""Messages that are embedded, and kept, at a time in the background."""


class StoredVectors:
    """Vectors of messages, and of texts made of them, for one embedding space.

    They go by the text and not by its topic: a message that moves keeps its vector. A purge removes
    those of its messages, and all that were made of any. Another embedder has another fingerprint,
    and so another file.
    """

    def __init__(self, embedder: Embedder, log: SessionLog) -> None:
        self._embedder = embedder
        self._session = log
        self._log = log.vectors(embedder.fingerprint)
        self._known: set[str] | None = None
        self._outdated = False
        self.incomplete = False
        """True if it gave rows that are zero, since the encoder failed, or since there were too
        many for a turn to wait for, and they may be there now."""
        self.left = 0
        """Messages that are being embedded in the background; until then their rows are zero."""

    def of(self, messages: Sequence[StoredMessage], *, wait: bool = True) -> Vectors:
        """Vectors [n, d] of messages [n], embedding and storing those that are new.

        What is stored is read anew by every call that asks for any of it: ask for many at once.
        Without `wait`, many messages that only have vectors of another encoder are embedded later.
        """
        return self._of([link(None, to_row(m)) for m in messages], [m.line for m in messages], wait)

    def of_texts(self, texts: Sequence[str]) -> Vectors:
        """Vectors [n, d] of texts [n] that were made of messages, such as briefs, likewise."""
        return self._of([made_key(text) for text in texts], texts)

    def _of(self, keys: Sequence[str], texts: Sequence[str], wait: bool = True) -> Vectors:
        found = np.zeros((len(keys), self._embedder.dimension), dtype=np.float32)
        stored: dict[str, int] = {}
        if self._known is None or not self._known.isdisjoint(keys):
            names, matrix = self._log.load(self._embedder.dimension)
            stored = {key: row for row, key in enumerate(names)}
            self._outdated = self._session.count_spaces() > bool(names)
            self._known = set(names)
            held = [i for i, key in enumerate(keys) if key in stored]
            if held:
                found[held] = matrix[[stored[keys[i]] for i in held]]
        missing = [i for i, key in enumerate(keys) if key not in stored]
        if len(missing) > _AT_ONCE and self._outdated and not wait:
            self._embed_later([keys[i] for i in missing], [texts[i] for i in missing])
        elif missing:
            found[missing] = self._embed([keys[i] for i in missing], [texts[i] for i in missing])
            self._known.update(keys[i] for i in missing if found[i].any())
        return found

    def _embed(self, keys: Sequence[str], texts: Sequence[str]) -> Vectors:
        vectors = self._embedder.embed(texts)
        made = [i for i in range(len(texts)) if vectors[i].any()]
        self._log.append([keys[i] for i in made], vectors[made])
        void = (text for text, vector in zip(texts, vectors, strict=True) if not vector.any())
        self.incomplete |= any(any(map(str.isalnum, text)) for text in void)
        return vectors

    def _embed_later(self, keys: Sequence[str], texts: Sequence[str]) -> None:
        if self.left:
            return
        self.left, removals = len(keys), self._session.removals

        def work() -> None:
            try:
                for begin in range(0, len(keys), _PART):
                    if self._session.removals != removals:
                        break  # some of these may be gone: what is left is read again
                    part = slice(begin, begin + _PART)
                    with defer_exit():
                        self._embed(keys[part], texts[part])
                    self.left -= len(keys[part])
            finally:
                self.left, self.incomplete = 0, True

        submit_daemon(work)


class GrowingRows:
    """Rows of one shape. Adding takes time by what is added, not by what is there."""

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike) -> None:
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


def vectors_of(messages: Sequence[StoredMessage], embedder: Embedder) -> Vectors:
    """Vectors [n, d] of messages: those of the user whole, the others by their beginning."""
    # A user message by the text that is searched with later in the turn: it is embedded once.
    return embedder.embed(
        [(m.query or m.text) if m.role == "user" else m.text[:_BEGINNING] for m in messages]
    )


def embed_rounds(rounds: Sequence[Round], embedder: Embedder) -> Vectors:
    """Mean vector of each round's messages, as unit rows [rounds, d]."""
    flat = vectors_of([r for b in rounds for r in b.messages], embedder)
    owner = np.repeat(np.arange(len(rounds)), [len(b.messages) for b in rounds])
    sums = np.zeros((len(rounds), embedder.dimension), dtype=np.float32)
    np.add.at(sums, owner, flat)
    return unit_rows(sums)
