"""A session's chains in domain terms: messages, topics, notes, days, receipts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

from pydantic import BaseModel

from topicloom.errors import StorageError
from topicloom.state.changes import ChangeEntry
from topicloom.state.journal import JournalEntry
from topicloom.state.recall import Note
from topicloom.state.receipt import Receipt
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.session import Session
from topicloom.state.stored_message import REMOVED, StoredMessage
from topicloom.state.superseding import Edit, fold_edits
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.base import (
    CHANGES,
    EDITS,
    LEDGER,
    ROSTER,
    SUPERSEDED,
    TIMELINE,
    TRANSCRIPT,
    TURNS,
)
from topicloom.storage.caches import WeighedCache
from topicloom.storage.chain import PURGED
from topicloom.storage.log import SessionLog
from topicloom.storage.message_rows import Row, from_row, recover_rows, to_row
from topicloom.storage.purging import PurgePlan, execute_purge, plan_purge


class SessionStore:
    """Reads and writes one session's chains.

    Every method takes the heads from the `Session` it is given and returns a new one where
    something was appended, so the checkpoint that holds the session stays the authority.
    """

    def __init__(
        self, log: SessionLog, *, cached_bytes: int = 16_000_000, watching: bool = False
    ) -> None:
        """A session's chains.

        Args:
            log: The session.
            cached_bytes: Memory for messages, and as much for lists of them.
            watching: True if every reading looks for purges of other processes, by
                `SessionLog.renew`; False where the caller does so before it reads.
        """
        self._log = log
        self._watching = watching
        self._cached_bytes = cached_bytes
        self._caches = _Caches(log.renewals, cached_bytes)
        self._reported = 0

    @property
    def log(self) -> SessionLog:
        """The session's log."""
        if self._watching:
            self._log.renew()
        return self._log

    @property
    def _kept(self) -> _Caches:
        """What was read of the session, and nothing that was read before the newest purge."""
        kept, renewals = self._caches, self.log.renewals
        if kept.renewals != renewals:
            kept = self._caches = _Caches(renewals, self._cached_bytes)
        return kept

    def append(self, session: Session, messages: Sequence[StoredMessage]) -> Session:
        """Append messages to the transcript; their numbers continue the conversation's."""
        session = self._append(session, TRANSCRIPT, map(to_row, messages))
        return session.model_copy(update={"count": session.count + len(messages)})

    def messages(
        self, session: Session, first: int = 1, last: int | None = None
    ) -> list[StoredMessage]:
        """Messages `first` to `last` (the newest by default), in order, as they are in view.

        Those that were removed are not among them, and those that were changed say what they say
        now.
        """
        return self._show(session, self.originals(session, first, last))

    def find_first(self, session: Session, last: int, limit: int | None) -> int:
        """Number of the first of at most `limit` messages in view that end with the `last`."""
        shown = self.superseded(session)
        numbers = (n for n in range(last, 0, -1) if n not in shown or shown[n] is not None)
        return min(islice(numbers, limit and min(limit, last)), default=last + 1)

    def originals(
        self, session: Session, first: int = 1, last: int | None = None
    ) -> list[StoredMessage]:
        """The same as they were said, superseded or not."""
        return self._read(TRANSCRIPT, self.transcript_refs(session)[max(first, 1) - 1 : last])

    def tail(self, session: Session, first: int) -> Sequence[StoredMessage]:
        """Messages from `first` on, fetched once for all readers of a turn."""
        key = session.transcript, session.superseded, first
        return self._kept.runs.fetch(key, lambda: self.messages(session, first))

    def transcript_refs(self, session: Session) -> Sequence[str]:
        """Refs of all messages, in order."""
        return self.log.refs(TRANSCRIPT, session.transcript)

    def message(self, session: Session, number: int) -> StoredMessage:
        """The message of that number; of one that is out of view, that it was there.

        Raises:
            IndexError: If the conversation has no such message.
        """
        return self.fetcher(session)(number)

    def fetcher(self, session: Session) -> Callable[[int], StoredMessage]:
        """What `message` gives by a number, for whoever asks for many: each is read once."""
        refs = self.transcript_refs(session)

        @cache
        def fetch(number: int) -> StoredMessage:
            self._check(session, number)
            (original,) = self._read(TRANSCRIPT, [refs[number - 1]])
            gone = {"text": REMOVED, "whole": None, "speaker": None, "query": None}
            found = self._show(session, [original])
            return found[0] if found else original.model_copy(update=gone)

        return fetch

    def pick(self, session: Session, numbers: Iterable[int]) -> dict[int, StoredMessage]:
        """Those messages of some numbers that are in view."""
        originals = self._read(TRANSCRIPT, self._refs_of(session, numbers))
        return {message.seq: message for message in self._show(session, originals)}

    def superseded(self, session: Session) -> Mapping[int, StoredMessage | None]:
        """What is shown in the place of superseded messages, by number; None for nothing."""
        if session.superseded is None:
            return {}
        made = self._kept.superseded
        return made.fetch(session.superseded, lambda: fold_edits(self.edits(session)))

    def edits(self, session: Session) -> list[Edit]:
        """The edits of the conversation, in order."""
        return list(map(Edit.model_validate, self._rows(session, SUPERSEDED)))

    def add_edit(self, session: Session, edit: Edit) -> Session:
        """Append to the edits of the conversation; `supersede` does what follows from it."""
        row = edit.model_dump(mode="json", exclude_defaults=True)
        return self._append(session, SUPERSEDED, [row])

    def _show(self, session: Session, originals: list[StoredMessage]) -> list[StoredMessage]:
        superseded = self.superseded(session)
        shown = [superseded.get(m.seq, m) for m in originals] if superseded else originals
        return [message for message in shown if message is not None]

    def topic_table(self, session: Session) -> TopicTable:
        """The topics of the checkpoint."""
        return self._kept.tables.fetch(session.roster, lambda: self._fold(session.roster))

    def _fold(self, head: str | None) -> TopicTable:
        refs, tables = self.log.refs(ROSTER, head), self._kept.tables
        for back in range(1, min(len(refs), 64) + 1):
            base = tables.get(refs[-back])
            if base is not None:
                return TopicTable.fold(self._topic_rows(refs[len(refs) - back + 1 :]), base)
        return TopicTable.fold(self._topic_rows(refs))

    def _topic_rows(self, refs: Sequence[str]) -> list[Row]:
        # A topic keeps what it does not know, but is no tombstone once it is written again.
        rows = self.log.read(ROSTER, refs)
        return [{key: value for key, value in row.items() if key != PURGED} for row in rows]

    def save_topics(self, session: Session, topics: Sequence[Topic]) -> Session:
        """Write topics to the roster; a row replaces the earlier ones of its id."""
        return self._append(session, ROSTER, map(_dump, topics))

    def move(self, topic: Topic, rounds: Sequence[Round]) -> Topic:
        """Append rounds to a topic's chain; returns the topic with its new head."""
        messages = [m for round_ in rounds for m in round_.messages]
        head = self.log.append(topic.chain, topic.head, list(map(to_row, messages)))
        known = [t for t in (topic.first_at, topic.last_at) if t]
        times = sorted([*known, *(m.time for m in messages)])
        return topic.model_copy(
            update={
                "head": head,
                "count": topic.count + len(messages),
                "first_at": times[0],
                "last_at": times[-1],
            }
        )

    def refill(self, topic: Topic, messages: Sequence[StoredMessage]) -> Topic:
        """The topic with a chain of these messages, in order, and of nothing else.

        What it begins with as before is shared with the old chain and not written again.
        """
        if not messages:
            return topic.emptied()
        filled = self.move(topic.emptied(), group_rounds(messages))
        update = {"newest": messages[-1].seq, "borrowed": topic.borrowed}
        return filled.model_copy(update=update | {"tokens": topic.tokens})

    def topic_messages(self, topic: Topic, start: int = 0) -> Sequence[StoredMessage]:
        """A topic's messages in order, from its `start`th (counted from 0) on.

        Those that cannot be read are taken from the transcript.

        Raises:
            MissingRecordError: The topic's entries are not known any more.
            StorageError: A message cannot be read, and not be taken from the transcript either.
        """
        key = topic.chain, topic.head, start
        return self._kept.runs.fetch(key, lambda: self._read_topic(topic, start))

    def topic_days(self, topic: Topic) -> dict[int, str]:
        """The days of a topic's messages by their numbers, in order; raises as `topic_messages`.

        It is read without making messages: of thousands of topics that is most of the time.
        """
        refs = self.log.refs(topic.chain, topic.head)
        try:
            rows: Sequence[Row] = self.log.read(topic.chain, refs)
        except StorageError:
            rows = recover_rows(self.log, topic.chain, refs)
        return {int(row["seq"]): str(row.get("time", ""))[:10] for row in rows}

    def _read_topic(self, topic: Topic, start: int) -> list[StoredMessage]:
        kept, refs = self._kept.messages, self.log.refs(topic.chain, topic.head)[start:]
        try:
            return self._read(topic.chain, refs)
        except StorageError:
            rows = recover_rows(self.log, topic.chain, refs)
        messages = list(map(from_row, rows))
        for ref, message in zip(refs, messages, strict=True):
            kept.put(ref, message)
        return messages

    def archive(self, topic: Topic, month: str) -> bool:
        """Move a topic's messages into the archive of a month; see `SessionLog.archive`.

        The topic is read, searched and added to as before.
        """
        return self.log.archive(topic.chain, month)

    def restore(self, topic: Topic) -> bool:
        """Move a topic's messages out of the archive; see `SessionLog.restore`."""
        return self.log.restore(topic.chain)

    def plan_purge(self, session: Session, messages: Topic | Iterable[int]) -> PurgePlan:
        """The plan by which messages, or all of a topic, are removed; nothing is removed yet.

        What they superseded goes with them, what they were changed to, and what other branches
        have of them.

        Raises:
            IndexError: If the conversation has no such message.
            StorageError: A message cannot be read.
        """
        refs = self._refs_of(session, self.find_named(session, messages))
        return plan_purge(self.log, refs, self.transcript_refs(session), edits=True)

    def find_named(self, session: Session, messages: Topic | Iterable[int]) -> set[int]:
        """Numbers of the messages that some messages, or a topic, stand for: what they superseded
        too.

        Raises:
            IndexError: If the conversation has no such message.
        """
        superseded = self.superseded(session)
        if isinstance(messages, Topic):
            ever = self.log.readable(messages.chain, list(self.log.entries(messages.chain)))
            left = {int(row["seq"]) for row in ever.values()} & superseded.keys()
            messages = [*left, *(r.seq for r in self.topic_messages(messages))]
        numbers = set(messages)
        for number in sorted(numbers)[:1] + sorted(numbers)[-1:]:
            self._check(session, number)
        before = self._read(TRANSCRIPT, self._refs_of(session, superseded))
        sources = {m.source for m in self._read(TRANSCRIPT, self._refs_of(session, numbers))}
        return numbers | {m.seq for m in before if m.source and m.source in sources}

    def purged(self) -> Mapping[str, StoredMessage]:
        """What is left of purged messages of all branches, by the ids that the application gave."""
        return self._kept.purged.fetch("", self._find_purged)

    def _find_purged(self) -> dict[str, StoredMessage]:
        rows = self.log.readable(TRANSCRIPT, list(self.log.entries(TRANSCRIPT)))
        gone = (from_row(row) for row in rows.values() if PURGED in row and "text" not in row)
        return {message.source: message for message in gone if message.source}

    def purge(self, plan: PurgePlan) -> int:
        """Remove messages for good, and what was made of them; see `SessionLog.purge`.

        Their places stay: a purged message reads `REMOVED`, in every checkpoint. What is not in
        the session's chains is not reached: the newest messages in the checkpoints themselves,
        stored facts, and later messages that repeat it.

        Returns:
            How many entries were purged that had not been before.

        Raises:
            StorageError: What an earlier version packed is damaged, so that its content is
                unknown; nothing was purged. Repair it, and purge again.
        """
        return execute_purge(self.log, plan)

    def purge_superseded(self, session: Session) -> int:
        """Purge all of superseded messages but the words that are shown; see `purge`."""
        shown = self.superseded(session)
        changed = [message for edit in self.edits(session) for message in edit.changed]
        stale = [m for m in changed if m.text != REMOVED and m != shown[m.seq]]
        refs = self._refs_of(session, shown)
        if not stale and all(m.text == REMOVED for m in self._read(TRANSCRIPT, refs)):
            return 0
        return self.purge(plan_purge(self.log, refs, self.transcript_refs(session), stale=stale))

    def _refs_of(self, session: Session, numbers: Iterable[int]) -> list[str]:
        refs = self.transcript_refs(session)
        return [refs[number - 1] for number in sorted(set(numbers))]

    def add_note(self, session: Session, note: Note) -> Session:
        """Append a recall note to the ledger."""
        return self._append(session, LEDGER, [_dump(note)])

    def notes(self, session: Session) -> Sequence[Note]:
        """Recall notes since the last split, in order."""
        read = partial(self._rows, session, LEDGER)
        return self._kept.notes.fetch(session.ledger, lambda: [*map(Note.model_validate, read())])

    def add_days(self, session: Session, topic: Topic, rounds: Sequence[Round]) -> Session:
        """Enter in the time index on which days a topic had messages."""
        days: dict[str, list[StoredMessage]] = {}
        for message in (m for round_ in rounds for m in round_.messages):
            days.setdefault(message.time[:10], []).append(message)
        rows = [
            {"day": day, "topic": topic.id, "first": ms[0].id, "last": ms[-1].id}
            for day, ms in sorted(days.items())
        ]
        return self._append(session, TIMELINE, rows)

    def days(self, session: Session) -> dict[str, set[str]]:
        """The time index: topics by day (`2026-03-02`)."""
        index: dict[str, set[str]] = {}
        for row in self._rows(session, TIMELINE):
            held = index.setdefault(row["day"], set())
            held.discard(row["topic"]) if row.get("gone") else held.add(row["topic"])
        return index

    def drop_days(self, session: Session, topic: Topic, days: Collection[str]) -> Session:
        """Enter in the time index that a topic has no messages of some days any more."""
        rows = [{"day": day, "topic": topic.id, "gone": True} for day in sorted(days)]
        return self._append(session, TIMELINE, rows)

    def add_change(self, session: Session, entry: ChangeEntry) -> Session:
        """Append to the journal of changes to topics."""
        return self._append(session, CHANGES, [_dump(entry)])

    def changes(self, session: Session) -> dict[str, ChangeEntry]:
        """The journal of changes to topics, in order, by the ids of its entries."""
        rows = self._rows(session, CHANGES)
        refs = self.log.refs(CHANGES, session.changes)
        return {ref: ChangeEntry.model_validate(r) for ref, r in zip(refs, rows, strict=True)}

    def add_receipt(self, session: Session, receipt: Receipt) -> Session:
        """Append a receipt to the turn log."""
        return self._append(session, TURNS, [_dump(receipt)])

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
        return self._append(session, EDITS, [_dump(entry)])

    def journal(self, session: Session) -> list[JournalEntry]:
        """Edits of the application's document, in order."""
        return list(map(JournalEntry.model_validate, self._rows(session, EDITS)))

    def new_reports(self) -> list[str]:
        """Damage found in storage since the last call: each piece is reported once a process."""
        reports = self.log.reports()[self._reported :]
        self._reported += len(reports)
        return reports

    @staticmethod
    def _check(session: Session, number: int) -> None:
        if not 1 <= number <= session.count:
            raise IndexError(f"the conversation has messages m1 to m{session.count}, not m{number}")

    def _append(self, session: Session, chain: str, rows: Iterable[Row]) -> Session:
        """Append to a chain of the session, whose head is the session's field of that name."""
        head = self.log.append(chain, getattr(session, chain), list(rows))
        return session.model_copy(update={chain: head})

    def _rows(
        self, session: Session, chain: str, newest: int | None = None, skipped: int = 0
    ) -> list[dict[str, Any]]:
        """The rows of a chain of the session, in order; only the `newest` ones if given."""
        refs = self.log.refs(chain, getattr(session, chain))
        end = max(0, len(refs) - skipped)
        return self.log.read(chain, refs[0 if newest is None else max(0, end - newest) : end])

    def _read(self, chain: str, refs: Sequence[str]) -> list[StoredMessage]:
        kept = self._kept.messages
        found = kept.get_all(refs)
        if missing := [ref for ref in refs if ref not in found]:
            for ref, row in zip(missing, self.log.read(chain, missing), strict=True):
                found[ref] = from_row(row)
                kept.put(ref, found[ref])
        return [found[ref] for ref in refs]


class _Caches:
    """What was read of a session behind the same purge."""

    def __init__(self, renewals: int, cached_bytes: int) -> None:
        self.renewals = renewals
        self.messages = WeighedCache[str, StoredMessage](cached_bytes, _weigh)
        self.tables = WeighedCache[str | None, TopicTable](8)
        self.runs = WeighedCache[_Run, Sequence[StoredMessage]](cached_bytes, _weigh_all)
        self.notes = WeighedCache[str | None, Sequence[Note]](4)
        self.superseded = WeighedCache[str, Mapping[int, StoredMessage | None]](8)
        self.purged = WeighedCache[str, Mapping[str, StoredMessage]](1)


_Run = tuple[str | None, str | None, int]
"""What a list of messages was read by: for a topic its chain, head and first, for the tail its
transcript, what is superseded, and first."""
_OVERHEAD = 2_000
"""Bytes of a validated message in memory beside its text and its blocks, roughly."""


def _weigh(message: StoredMessage) -> int:
    return len(message.text) + len(repr(message.whole)) + _OVERHEAD


def _weigh_all(messages: Sequence[StoredMessage]) -> int:
    return sum(map(_weigh, messages))


def _dump(row: BaseModel) -> dict[str, Any]:
    return row.model_dump(mode="json")
