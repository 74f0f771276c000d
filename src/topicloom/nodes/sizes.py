"""How large stretches of the transcript are, without counting them again every turn."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from topicloom.state.records import Record
from topicloom.state.session import Session
from topicloom.storage.sessions import SessionStore


class TranscriptSizes:
    """Running sums of message sizes along the newest branch that was asked for.

    A turn counts what is new; the tail of a large window may be thousands of messages.
    """

    def __init__(self, store: SessionStore, size: Callable[[Record], int]) -> None:
        self._store = store
        self._size = size
        self._first = 1
        self._refs: Sequence[str] = ()
        self._sums: list[int] = [0]

    def between(self, session: Session, first: int, last: int) -> int:
        """Tokens of the messages `first` to `last`, both included."""
        refs = self._store.transcript_refs(session)[:last]
        if first < self._first or not self._sums[1:]:
            self._first, self._refs, self._sums = first, refs[: first - 1], [0]
        known = self._common(refs)
        if known < self._first - 1:
            self._first, known = first, first - 1
        del self._sums[known - self._first + 2 :]
        for record in self._store.records(session, known + 1, last):
            self._sums.append(self._sums[-1] + self._size(record))
        self._refs = refs
        return self._sums[last - self._first + 1] - self._sums[first - self._first]

    def _common(self, refs: Sequence[str]) -> int:
        """How many leading messages the two branches share: a ref stands for all before it."""
        shared = min(len(refs), len(self._refs))
        if shared == 0 or refs[shared - 1] == self._refs[shared - 1]:
            return shared
        return bisect_left(range(shared), True, key=lambda i: refs[i] != self._refs[i])
