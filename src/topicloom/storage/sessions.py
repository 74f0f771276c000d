"""A session's chains in domain terms: records, topics, notes, days, receipts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from topicloom.errors import StorageError
from topicloom.state.recall import Note
from topicloom.state.receipt import JournalEntry, Receipt
from topicloom.state.rounds import Round
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.base import EDITS, LEDGER, ROSTER, TIMELINE, TRANSCRIPT, TURNS
from topicloom.storage.caches import WeighedCache
from topicloom.storage.log import SessionLog
from topicloom.storage.packing import ArchiveCard
from topicloom.storage.purging import PurgePlan, carry_out, plan_purge
from topicloom.storage.records import record_in, recovered, row_of

__all__ = ["LEDGER", "ROSTER", "TIMELINE", "TRANSCRIPT", "TURNS", "SessionStore"]


class SessionStore:
    """Reads and writes one session's chains.

    Every method takes the heads from the `Session` it is given and returns a new one where
    something was appended, so the checkpoint that holds the session stays the authority.
    """

    def __init__(self, log: SessionLog, *, cached_bytes: int = 16_000_000) -> None:
        self.log = log
        self._records: WeighedCache[str, StoredMessage] = WeighedCache(cached_bytes, _weight)
        self._rosters: WeighedCache[str | None, TopicTable] = WeighedCache(8, lambda _: 1)
        self._reported = 0

    def append(self, session: Session, records: Sequence[StoredMessage]) -> Session:
        """Append messages to the transcript; their numbers continue the conversation's."""
        head = self.log.append(TRANSCRIPT, session.transcript, [row_of(r) for r in records])
        return session.model_copy(
            update={"transcript": head, "count": session.count + len(records)}
        )

    def records(
        self, session: Session, first: int = 1, last: int | None = None
    ) -> list[StoredMessage]:
        """Messages `first` to `last` (the newest by default), in order."""
        refs = self.log.refs(TRANSCRIPT, session.transcript)
        return self._read(TRANSCRIPT, refs[max(first, 1) - 1 : last])

    def transcript_refs(self, session: Session) -> Sequence[str]:
        """Refs of all messages, in order."""
        return self.log.refs(TRANSCRIPT, session.transcript)

    def record(self, session: Session, number: int) -> StoredMessage:
        """The message of that number.

        Raises:
            IndexError: If the conversation has no such message.
        """
        self._check(session, number)
        (record,) = self.records(session, number, number)
        return record

    def pick(self, session: Session, numbers: Iterable[int]) -> dict[int, StoredMessage]:
        """The messages of some numbers."""
        wanted = sorted(set(numbers))
        refs = self.log.refs(TRANSCRIPT, session.transcript)
        records = self._read(TRANSCRIPT, [refs[n - 1] for n in wanted])
        return dict(zip(wanted, records, strict=True))

    def topic_table(self, session: Session) -> TopicTable:
        """The topics of the checkpoint."""
        known = self._rosters.get(session.roster)
        if known is None:
            known = self._fold(session.roster)
            self._rosters.put(session.roster, known)
        return known

    def _fold(self, head: str | None) -> TopicTable:
        refs = self.log.refs(ROSTER, head)
        for back in range(1, min(len(refs), 64) + 1):
            base = self._rosters.get(refs[-back])
            if base is not None:
                return TopicTable.fold(self.log.read(ROSTER, refs[len(refs) - back + 1 :]), base)
        return TopicTable.fold(self.log.read(ROSTER, refs))

    def save_topics(self, session: Session, topics: Sequence[Topic]) -> Session:
        """Write topics to the roster; a row replaces the earlier ones of its id."""
        head = self.log.append(ROSTER, session.roster, [t.model_dump(mode="json") for t in topics])
        return session.model_copy(update={"roster": head})

    def move(self, topic: Topic, rounds: Sequence[Round]) -> Topic:
        """Append rounds to a topic's chain; returns the topic with its new head."""
        records = [r for round_ in rounds for r in round_.records]
        head = self.log.append(topic.chain, topic.head, [row_of(r) for r in records])
        times = sorted(
            [t for t in (topic.first_at, topic.last_at) if t] + [r.time for r in records]
        )
        return topic.model_copy(
            update={
                "head": head,
                "count": topic.count + len(records),
                "first_at": times[0],
                "last_at": times[-1],
            }
        )

    def topic_records(self, topic: Topic, start: int = 0) -> list[StoredMessage]:
        """A topic's messages in order, from its `start`th (counted from 0) on.

        Those that an archive which is damaged or gone does not give are taken from the transcript.

        Raises:
            MissingRecordError: The topic's entries are not known any more.
            StorageError: A message cannot be read, and not be taken from the transcript either.
        """
        refs = self.log.refs(topic.chain, topic.head)[start:]
        try:
            return self._read(topic.chain, refs)
        except StorageError:
            rows = recovered(self.log, topic.chain, refs)
        records = list(map(record_in, rows))
        for ref, record in zip(refs, records, strict=True):
            self._records.put(ref, record)
        return records

    def archive(self, topic: Topic, month: str) -> None:
        """Move a topic's messages into the archive, beside a summary for people.

        The topic is read, searched and added to as before. See `SessionLog.archive`.

        Args:
            topic: With its newest name, brief and summary.
            month: What to file it under, `2026-03`.
        """
        self.log.archive(topic.chain, month, _summary(topic, self.topic_records(topic)))

    def restore(self, topic: Topic) -> None:
        """Move a topic's messages out of the archive; see `SessionLog.restore`."""
        self.log.restore(topic.chain)

    def archived(self, topic: Topic) -> ArchiveCard | None:
        """The card of an archived topic; None when nothing of it is archived."""
        return self.log.archived(topic.chain)

    def plan_purge(self, session: Session, messages: Topic | Iterable[int]) -> PurgePlan:
        """The plan by which some messages are removed; nothing is removed yet.

        Args:
            session: Says which branch is meant.
            messages: Numbers of messages, or a topic for all of its own.

        Raises:
            IndexError: If the conversation has no such message.
            StorageError: A message cannot be read.
        """
        if isinstance(messages, Topic):
            messages = [r.seq for r in self.topic_records(messages)]
        numbers = sorted(set(messages))
        for number in numbers[:1] + numbers[-1:]:
            self._check(session, number)
        refs = self.transcript_refs(session)
        return plan_purge(self.log, [refs[n - 1] for n in numbers])

    def purge(self, plan: PurgePlan) -> int:
        """Remove messages for good, and what was made of them; see `SessionLog.purge`.

        Their places stay: a purged message reads `REMOVED`, in every checkpoint. What is not in
        the session's chains is not reached: the newest messages in the checkpoints themselves,
        facts that were kept, other processes' memory, and later messages that repeat it.

        Returns:
            How many entries were purged that had not been before.

        Raises:
            StorageError: An archive is damaged, and nobody can say what is in it. What was purged
                before it stays purged; mend it, and purge again.
        """
        count = carry_out(self.log, plan)
        self._records.drop(ref for keep in plan.entries.values() for ref in keep)
        self._rosters.clear()
        return count

    def add_note(self, session: Session, note: Note) -> Session:
        """Append a recall note to the ledger."""
        head = self.log.append(LEDGER, session.ledger, [note.model_dump(mode="json")])
        return session.model_copy(update={"ledger": head})

    def notes(self, session: Session) -> list[Note]:
        """Recall notes since the last split, in order."""
        refs = self.log.refs(LEDGER, session.ledger)
        return [Note.model_validate(row) for row in self.log.read(LEDGER, refs)]

    def add_days(self, session: Session, topic: Topic, rounds: Sequence[Round]) -> Session:
        """Enter in the time index on which days a topic had messages."""
        days: dict[str, list[StoredMessage]] = {}
        for record in (r for round_ in rounds for r in round_.records):
            days.setdefault(record.time[:10], []).append(record)
        rows = [
            {"day": day, "topic": topic.id, "first": rs[0].id, "last": rs[-1].id}
            for day, rs in sorted(days.items())
        ]
        head = self.log.append(TIMELINE, session.timeline, rows)
        return session.model_copy(update={"timeline": head})

    def days(self, session: Session) -> dict[str, set[str]]:
        """The time index: topics by day (`2026-03-02`)."""
        index: dict[str, set[str]] = {}
        for row in self.log.read(TIMELINE, self.log.refs(TIMELINE, session.timeline)):
            index.setdefault(row["day"], set()).add(row["topic"])
        return index

    def add_receipt(self, session: Session, receipt: Receipt) -> Session:
        """Append a receipt to the turn log."""
        head = self.log.append(TURNS, session.turns, [receipt.model_dump(mode="json")])
        return session.model_copy(update={"turns": head})

    def receipts(self, session: Session, newest: int | None = None) -> list[Receipt]:
        """Receipts in order; only the `newest` ones if given."""
        refs = self.log.refs(TURNS, session.turns)
        chosen = refs if newest is None else refs[max(0, len(refs) - newest) :]
        return [Receipt.model_validate(row) for row in self.log.read(TURNS, chosen)]

    def add_edits(self, session: Session, entry: JournalEntry) -> Session:
        """Append to the journal of edits."""
        head = self.log.append(EDITS, session.edits, [entry.model_dump(mode="json")])
        return session.model_copy(update={"edits": head})

    def journal(self, session: Session) -> list[JournalEntry]:
        """Edits of the application's document, in order."""
        refs = self.log.refs(EDITS, session.edits)
        return [JournalEntry.model_validate(row) for row in self.log.read(EDITS, refs)]

    def new_reports(self) -> list[str]:
        """Damage found in storage since the last call: each piece is told once a process."""
        reports = self.log.reports()[self._reported :]
        self._reported += len(reports)
        return reports

    @staticmethod
    def _check(session: Session, number: int) -> None:
        if not 1 <= number <= session.count:
            raise IndexError(f"the conversation has messages m1 to m{session.count}, not m{number}")

    def _read(self, chain: str, refs: Sequence[str]) -> list[StoredMessage]:
        held = {ref: record for ref in refs if (record := self._records.get(ref)) is not None}
        missing = [ref for ref in refs if ref not in held]
        if missing:
            for ref, row in zip(missing, self.log.read(chain, missing), strict=True):
                held[ref] = record_in(row)
                self._records.put(ref, held[ref])
        return [held[ref] for ref in refs]


_OVERHEAD = 2_000
"""Bytes of a validated record in memory beside its text, roughly."""


def _weight(record: StoredMessage) -> int:
    return len(record.text) + _OVERHEAD


def _summary(topic: Topic, records: Sequence[StoredMessage]) -> dict[str, Any]:
    """The summary that stands beside an archived topic, for people."""
    return {
        "topic": topic.id,
        "name": topic.name,
        "brief": topic.brief,
        "summary": topic.summary,
        "count": topic.count,
        "first_at": topic.first_at,
        "last_at": topic.last_at,
        "days": sorted({record.day for record in records}),
    }
