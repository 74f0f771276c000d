"""Messages as rows of chains: written, read, and found again where they are damaged.

Every message of a topic stands in the transcript too, in the same words. An entry that cannot be
read is identified by its ref: it is a hash of the ref before it and the row, so a row either is the
one that was written or does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from topicloom.state.stored_message import MARKS, REMOVED, StoredMessage, to_stored_message
from topicloom.storage.base import TRANSCRIPT
from topicloom.storage.chain import PURGED, link
from topicloom.storage.log import SessionLog

Row = Mapping[str, Any]


def from_row(row: Row) -> StoredMessage:
    """The message in a row of the transcript or of a topic; of a purged one, with its text away.

    What was left of its text was no part of what was purged: it had only been rewritten by that.
    """
    return StoredMessage.model_validate({"text": REMOVED, **row})


def is_left_of(left: StoredMessage, prev: str | None, ref: str, message: BaseMessage) -> bool:
    """True if a message is the one of which purging left that, by its refs in the transcript.

    One that was given other words to be searched by is not recognised.
    """
    said = to_stored_message(message, seq=left.seq, time=left.time)
    marked = said.model_copy(update=left.model_dump(include=MARKS))
    return link(prev, to_row(marked)) == ref


def to_row(message: StoredMessage) -> dict[str, Any]:
    """The row of a message."""
    return {"id": message.id} | message.model_dump(mode="json", exclude_defaults=True)


def recover_rows(log: SessionLog, chain: str, refs: Sequence[str]) -> list[Row]:
    """The rows of entries of a topic, those that cannot be read taken from the transcript.

    Costs time in proportion to the transcript.

    Raises:
        StorageError: A row cannot be read and is not in the transcript either.
    """
    readable, prevs = log.readable(chain, refs), log.entries(chain)
    search = _TranscriptSearch(log)
    rows: list[Row] = []
    for ref in refs:
        row = readable.get(ref) or search.find(prevs[ref], ref) or log.read(chain, [ref])[0]
        search.go_behind(row)
        rows.append(row)
    return rows


class _TranscriptSearch:
    """Finds rows of the transcript, of all its branches, by what their refs would be."""

    def __init__(self, log: SessionLog) -> None:
        refs = list(log.entries(TRANSCRIPT))
        found = log.readable(TRANSCRIPT, refs)
        self._rows = sorted(found.values(), key=lambda row: int(row["seq"]))
        self._whole = len(found) == len(refs)
        self._at = {row["id"]: place for place, row in enumerate(self._rows)}
        self._next = 0

    def find(self, prev: str | None, ref: str) -> Row | None:
        """The row that an entry was; None when there is none.

        The hash of a purged row cannot be found again. An entry that fits no other row of a
        transcript without damage was one of them: the first that comes next.
        """
        for row in (*self._rows[self._next :], *self._rows[: self._next]):
            if link(prev, row) == ref:
                return row
        purged = (row for row in self._rows[self._next :] if PURGED in row)
        return next(purged, None) if self._whole else None

    def go_behind(self, row: Row) -> None:
        """Go on behind a row: a topic is in the order of the conversation."""
        self._next = self._at.get(row["id"], self._next - 1) + 1
