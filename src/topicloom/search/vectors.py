"""Vectors of messages and rounds; those of stored messages are made once and stored with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from topicloom.background import defer_exit, submit_daemon
from topicloom.search.embedder import Embedder, Vectors
from topicloom.state.stored_message import StoredMessage
from topicloom.storage.base import TRANSCRIPT
from topicloom.storage.chain import link
from topicloom.storage.log import SessionLog
from topicloom.storage.message_rows import from_row, to_row
from topicloom.storage.vectors import made_key

BEGINNING = 200
"""Characters embedded of a reply, or of a topic's name with its brief: their subject shows in their
first lines, a turn waits for the one, and the other changes with every split."""
_AT_ONCE = 256
"""Messages of an older session that a turn waits for where its encoder is another one now."""
_PART = 32
"""Messages that are embedded, and kept, at a time in the background."""
Place = str
"""Where a message stands: its ref in the transcript."""


class StoredVectors:
    """Vectors of messages, and of texts made of them, for one embedding space.

    They go by the text and not by its topic: a message that moves keeps its vector. A purge removes
    those of its messages, and all that were made of any; what is purged while it is embedded gets
    none, and a session that is deleted meanwhile does not come back. Another embedder has another
    fingerprint, and so another file.
    """

    def __init__(self, embedder: Embedder, log: SessionLog) -> None:
        self._embedder = embedder
        self._session = log
        self._log = log.vectors(embedder.fingerprint)
        self._known: set[str] | None = None
        self._outdated = False
        self._met: Place | None = None
        self.incomplete = False
        """True if it gave rows that are zero, since the encoder failed, or since there were too
        many for a turn to wait for, and they may be there now."""
        self.left = 0
        """Messages that are being embedded in the background; until then their rows are zero."""

    def of(
        self, messages: Sequence[StoredMessage], places: Sequence[Place] = (), *, wait: bool = True
    ) -> Vectors:
        """Vectors [n, d] of messages [n], embedding and storing those that are new.

        Stored are those only that stand at their places [n] by then. What is stored is read anew by
        every call that asks for any of it: ask for many at once.
        Without `wait`, many messages that only have vectors of another encoder are embedded later.
        """
        keys = [link(None, to_row(m)) for m in messages]
        self._met = places[-1] if places else self._met
        return self._of(keys, [m.line for m in messages], places, wait)

    def of_texts(self, texts: Sequence[str]) -> Vectors:
        """Vectors [n, d] of texts [n] that were made of messages, such as briefs, likewise."""
        return self._of([made_key(text) for text in texts], texts)

    def _of(
        self,
        keys: Sequence[str],
        texts: Sequence[str],
        places: Sequence[Place] | None = None,
        wait: bool = True,
    ) -> Vectors:
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
        fresh, new = [keys[i] for i in missing], [texts[i] for i in missing]
        at = [places[i] for i in missing] if places else places
        if at and len(missing) > _AT_ONCE and self._outdated and not wait:
            self._embed_later(fresh, new, at)
        elif missing:
            found[missing] = self._embed(fresh, new, at)
            self._known.update(keys[i] for i in missing if found[i].any())
        return found

    def _embed(
        self, keys: Sequence[str], texts: Sequence[str], places: Sequence[Place] | None
    ) -> Vectors:
        if places is None:
            self._session.renew()
        renewals = self._session.renewals
        vectors = self._embedder.embed(texts)
        made = [i for i in range(len(texts)) if vectors[i].any()]
        standing = (
            self._find_made(keys, renewals)
            if places is None
            else self._find_stored(list(zip(keys, places, strict=False)))
        )
        self._log.append([keys[i] for i in made], vectors[made], standing)
        void = (text for text, vector in zip(texts, vectors, strict=True) if not vector.any())
        self.incomplete |= any(any(map(str.isalnum, text)) for text in void)
        return vectors

    @contextmanager
    def _find_stored(self, keyed: Sequence[tuple[str, Place]]) -> Iterator[set[str]]:
        """Keys of those messages that stand at their places, and do for as long as it lasts."""
        refs = [ref for _, ref in keyed]
        with self._session.hold():
            rows = {
                ref: link(None, to_row(from_row(row)))
                for ref, row in self._session.standing(TRANSCRIPT, refs).items()
            }
            yield {key for key, place in keyed if rows.get(place) == key}

    @contextmanager
    def _find_made(self, keys: Collection[str], renewals: int) -> Iterator[Collection[str]]:
        """The keys of texts that were made of messages, unless anything was purged since."""
        with self._session.hold():
            self._session.renew()
            met = self._met and self._session.standing(TRANSCRIPT, [self._met])
            yield keys if met and self._session.renewals == renewals else ()

    def _embed_later(
        self, keys: Sequence[str], texts: Sequence[str], places: Sequence[Place]
    ) -> None:
        if self.left:
            return
        self.left, renewals = len(keys), self._session.renewals

        def work() -> None:
            try:
                for begin in range(0, len(keys), _PART):
                    self._session.renew()
                    if self._session.renewals != renewals:
                        break  # some of these may be gone: what is left is read again
                    part = slice(begin, begin + _PART)
                    with defer_exit():
                        self._embed(keys[part], texts[part], places[part])
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
        self._count = min(count, self._count)


def vectors_of(messages: Sequence[StoredMessage], embedder: Embedder) -> Vectors:
    """Vectors [n, d] of messages: those of the user whole, the others by their beginning."""
    # A user message by the text that is searched with later in the turn: it is embedded once.
    return embedder.embed(
        [(m.query or m.text) if m.role == "user" else m.text[:BEGINNING] for m in messages]
    )
