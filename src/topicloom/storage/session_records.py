"""A session's chains whose rows are read as they are written: notes, receipts, and journals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel

from topicloom.state.changes import ChangeEntry
from topicloom.state.journal import JournalEntry
from topicloom.state.recall import Note
from topicloom.state.receipt import Receipt
from topicloom.state.session import Session
from topicloom.storage.base import CHANGES, EDITS, LEDGER, TURNS
from topicloom.storage.caches import ReadCaches, WeighedCache
from topicloom.storage.log import SessionLog
from topicloom.storage.message_rows import Row

F = TypeVar("F")


class SessionRecords:
    """Appends rows to the chains of a session, and reads them; see `SessionStore`."""

    def __init__(self, log: SessionLog, *, watching: bool = False) -> None:
        """A session's chains.

        Args:
            log: The session.
            watching: True if every reading looks for purges of other processes, by
                `SessionLog.renew`; False where the caller does so before it reads.
        """
        self._log = log
        self._watching = watching
        self._caches = ReadCaches(log.renewals)
        self._reported = 0

    @property
    def log(self) -> SessionLog:
        """The session's log."""
        if self._watching:
            self._log.renew()
        return self._log

    @property
    def _kept(self) -> ReadCaches:
        """What was read of the session, and nothing that was read before the newest purge."""
        kept, renewals = self._caches, self.log.renewals
        if kept.renewals != renewals:
            kept = self._caches = ReadCaches(renewals)
        return kept

    def renew(self) -> None:
        """Have nothing in memory of what was purged by now, whichever process did it."""
        self._log.renew()

    def add_note(self, session: Session, note: Note) -> Session:
        """Append a recall note to the ledger."""
        return self._append(session, LEDGER, [note])

    def notes(self, session: Session) -> Sequence[Note]:
        """Recall notes since the last split, in order."""
        read = partial(self._rows, session, LEDGER)
        return self._kept.notes.fetch(session.ledger, lambda: [*map(Note.model_validate, read())])

    def add_change(self, session: Session, entry: ChangeEntry) -> Session:
        """Append to the journal of changes to topics."""
        return self._append(session, CHANGES, [entry])

    def changes(self, session: Session) -> dict[str, ChangeEntry]:
        """The journal of changes to topics, in order, by the ids of its entries."""
        rows = self._rows(session, CHANGES)
        refs = self.log.refs(CHANGES, session.changes)
        return {ref: ChangeEntry.model_validate(r) for ref, r in zip(refs, rows, strict=True)}

    def add_receipt(self, session: Session, receipt: Receipt) -> Session:
        """Append a receipt to the turn log."""
        return self._append(session, TURNS, [receipt])

    def receipts(
        self, session: Session, newest: int | None = None, skipped: int = 0
    ) -> list[Receipt]:
        """Receipts in order; only the `newest` ones if given, behind some that are `skipped`."""
        return list(map(Receipt.model_validate, self._rows(session, TURNS, newest, skipped)))

    def last_receipt(self, session: Session) -> Receipt | None:
        """The newest receipt, read without those before it; None before the first turn ends."""
        rows = self.log.read(TURNS, [session.turns] if session.turns else [])
        return Receipt.model_validate(rows[0]) if rows else None

    def add_edits(self, session: Session, entry: JournalEntry) -> Session:
        """Append to the journal of edits."""
        return self._append(session, EDITS, [entry])

    def journal(self, session: Session) -> list[JournalEntry]:
        """Edits of the application's document, in order."""
        return list(map(JournalEntry.model_validate, self._rows(session, EDITS)))

    def new_reports(self) -> list[str]:
        """Damage found in storage since the last call: each piece is reported once a process."""
        reports = self.log.reports()[self._reported :]
        self._reported += len(reports)
        return reports

    def _append(self, session: Session, chain: str, rows: Iterable[Row | BaseModel]) -> Session:
        """Append to a chain of the session, whose head is the session's field of that name."""
        plain = [r.model_dump(mode="json") if isinstance(r, BaseModel) else r for r in rows]
        head = self.log.append(chain, getattr(session, chain), plain)
        return session.model_copy(update={chain: head})

    def _rows(
        self, session: Session, chain: str, newest: int | None = None, skipped: int = 0
    ) -> list[dict[str, Any]]:
        """The rows of a chain of the session, in order; only the `newest` ones if given."""
        refs = self.log.refs(chain, getattr(session, chain))
        end = max(0, len(refs) - skipped)
        return self.log.read(chain, refs[0 if newest is None else max(0, end - newest) : end])

    def _fold(
        self,
        chain: str,
        head: str | None,
        kept: WeighedCache[str | None, F],
        fold: Callable[[Sequence[Row], F | None], F],
    ) -> F:
        """The value of a chain at a head, from a value that was folded a little before it."""
        refs = self.log.refs(chain, head)
        for back in range(1, min(len(refs), 4_096) + 1):
            base = kept.get(refs[-back])
            if base is not None:
                return fold(self.log.read(chain, refs[len(refs) - back + 1 :]), base)
        return fold(self.log.read(chain, refs), None)
