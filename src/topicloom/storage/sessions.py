"""A session's chains in domain terms: messages, topics, days, and what is purged of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice

from topicloom.errors import StorageError
from topicloom.state.safe_text import digest_text
from topicloom.state.session import Session
from topicloom.state.stored_message import REMOVED, StoredMessage
from topicloom.state.superseding import Edit, fold_edits
from topicloom.state.topic_ranges import Range, TopicRanges, list_numbers, make_ranges, write_rows
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.base import RANGES, ROSTER, SUPERSEDED, TRANSCRIPT
from topicloom.storage.caches import TopicContent
from topicloom.storage.chain import PURGED
from topicloom.storage.message_rows import Row, from_row, to_row
from topicloom.storage.purging import PurgePlan, execute_purge, plan_purge
from topicloom.storage.session_records import SessionRecords


class SessionStore(SessionRecords):
    """Reads and writes one session's chains.

    Every method takes the heads from the `Session` it is given and returns a new one where
    something was appended, so the checkpoint that holds the session stays the authority.
    """

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
        kept, head = self._kept.tables, session.roster
        return kept.fetch(head, lambda: self._fold(ROSTER, head, kept, _fold_topics))

    def ranges(self, session: Session) -> TopicRanges:
        """Which topic of the checkpoint has which messages."""
        kept, head = self._kept.ranges, session.ranges
        return kept.fetch(head, lambda: self._fold(RANGES, head, kept, TopicRanges.fold))

    def save_topics(self, session: Session, topics: Sequence[Topic]) -> Session:
        """Write topics to the roster; a row replaces the earlier ones of its id."""
        return self._append(session, ROSTER, [self._digest(session, t) for t in topics])

    def assign(
        self, session: Session, topic: Topic, messages: Sequence[StoredMessage]
    ) -> tuple[Session, Topic]:
        """Put messages into a topic, whichever topic they were in; returns its row too.

        The rows of the topics that lose any are the caller's to write; see `recount`.
        """
        superseded = self.superseded(session)
        hidden = {n for n, shown in superseded.items() if shown is None}
        ranges = make_ranges((m.seq for m in messages), hidden)
        session = self._write_ranges(session, topic.id, ranges)
        return session, self._digest(session, topic.gained(messages))

    def hand_over(self, session: Session, topic: Topic, to: Topic) -> Session:
        """Put all messages of a topic, in view or not, into another; the rows stay as they are."""
        return self._write_ranges(session, to.id, self.ranges(session).of(topic.id))

    def refer(self, session: Session, topic: Topic, ranges: Iterable[Range]) -> Session:
        """Have a topic refer to messages of others."""
        return self._write_ranges(session, topic.id, ranges, also=True)

    def _write_ranges(
        self, session: Session, topic: str, ranges: Iterable[Range], *, also: bool = False
    ) -> Session:
        refs = self.transcript_refs(session)
        rows = write_rows(topic, ranges, lambda number: refs[number - 1], also=also)
        return self._append(session, RANGES, rows)

    def recount(self, session: Session, topic: Topic) -> Topic:
        """The topic with the figures of the messages that it has now."""
        messages = self.topic_messages(session, topic)
        return self._digest(session, topic.emptied().gained(messages, tokens=topic.tokens))

    def _digest(self, session: Session, topic: Topic) -> Topic:
        held = self._find_content(session, topic)
        content = digest_text(repr(held)) if topic.count else ""
        return topic.model_copy(update={"content": content})

    def _find_content(self, session: Session, topic: Topic) -> TopicContent:
        held = self.ranges(session).of(topic.id)
        if not held:
            return TopicContent()
        newest = self.transcript_refs(session)[held[-1][1] - 1]
        key = session.ranges, session.superseded
        edited = self._kept.edited.fetch(key, lambda: self._find_edited(session))
        return TopicContent(held, newest, edited.get(topic.id, ()))

    def _find_edited(self, session: Session) -> Mapping[str, tuple[tuple[int, str], ...]]:
        """The superseded messages of each topic, with the refs of the edits that count."""
        refs = self.log.refs(SUPERSEDED, session.superseded)
        pairs = zip(refs, self.edits(session), strict=True)
        by_number = {number: ref for ref, edit in pairs for number in edit.numbers}
        return {
            topic: tuple((n, by_number[n]) for n in numbers)
            for topic, numbers in self.ranges(session).group(sorted(by_number)).items()
        }

    def topic_messages(self, session: Session, topic: Topic) -> Sequence[StoredMessage]:
        """A topic's messages as they are in view, in order.

        Raises:
            StorageError: A message cannot be read.
        """
        content = self._find_content(session, topic)

        def read() -> Sequence[StoredMessage]:
            refs = self._refs_of(session, list_numbers(content.ranges))
            return self._show(session, self._read(TRANSCRIPT, refs))

        return self._kept.runs.fetch(content, read)

    def days(self, session: Session) -> dict[str, set[str]]:
        """Topics by the days (`2026-03-02`) on which they have messages."""
        days, index = self.message_days(session), dict[str, set[str]]()
        for topic, number in self.list_filed(session):
            index.setdefault(days[number - 1], set()).add(topic)
        return index

    def topic_refs(self, session: Session, topic: Topic) -> list[str]:
        """The refs of a topic's messages in the transcript, in view or not."""
        return self._refs_of(session, self.ranges(session).numbers(topic.id))

    def list_filed(self, session: Session) -> Iterator[tuple[str, int]]:
        """The topics and numbers of all messages that are in view and in a topic."""
        superseded = self.superseded(session)
        for topic, ranges in self.ranges(session).held.items():
            for number in list_numbers(ranges):
                if superseded.get(number, True) is not None:
                    yield topic, number

    def message_days(self, session: Session) -> Sequence[str]:
        """The days of all messages, in order."""
        kept, head = self._kept.days, session.transcript
        return kept.fetch(head, lambda: self._fold(TRANSCRIPT, head, kept, _fold_days))

    def plan_purge(self, session: Session, messages: Topic | Iterable[int]) -> PurgePlan:
        """The plan by which messages, or all of a topic, are removed; nothing is removed yet.

        What they superseded goes with them, what they were changed to, and what other branches
        have of them.

        Raises:
            IndexError: If the conversation has no such message.
            StorageError: A message cannot be read.
        """
        refs = self._refs_of(session, self.find_named(session, messages))
        return plan_purge(self.log, session, refs, edits=True)

    def find_named(self, session: Session, messages: Topic | Iterable[int]) -> set[int]:
        """Numbers of the messages that some messages, or a topic, stand for: what they superseded
        too.

        Raises:
            IndexError: If the conversation has no such message.
        """
        superseded = self.superseded(session)
        if isinstance(messages, Topic):
            messages = list_numbers(self.ranges(session).of(messages.id))
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
        rows = self.log.rows(TRANSCRIPT)
        gone = (from_row(row) for row in rows.values() if PURGED in row and "text" not in row)
        return {message.source: message for message in gone if message.source}

    def purge(self, plan: PurgePlan) -> int:
        """Remove messages for good, and what was made of them; see `SessionLog.purge`.

        Their places stay: a purged message reads `REMOVED`, in every checkpoint. What is not in
        the session's chains is not reached: the newest messages in the checkpoints themselves,
        stored facts, and later messages that repeat it.

        Returns:
            How many entries were purged that had not been before.
        """
        count = execute_purge(self.log, plan)
        # All of them: this may finish a purge that was killed, and any copy may have what is gone.
        self.copy_topics(plan.session, anew=True)
        return count

    def copy_topics(
        self, session: Session, before: Session | None = None, *, anew: bool = False
    ) -> None:
        """Bring the copies of topics for people up to date, where the storage has any.

        Args:
            session: The session that they are to show.
            before: The session that they show if this process has written none yet.
            anew: True to write all of them, though they seem up to date.

        Raises:
            StorageUnavailableError: What was purged cannot be removed from them.
        """
        files = self.log.topic_files
        if files is None:
            return
        before, known = None if anew else files.session or before, dict[str, Topic]()
        try:
            known.update(self.topic_table(before).topics if before else {})
        except StorageError:  # it was repaired since
            before = None
        table = self.topic_table(session)
        changed = [t.id for t in table if known.get(t.id) != t]
        gone = ["*"] if before is None else [i for i in known if i not in table]
        if changed or gone:
            # A purge does this last of all: what it left is what is read here, or read by it later.
            with self._log.hold():
                self._log.renew()
                for topic in gone:
                    files.remove(topic)
                table = self.topic_table(session)
                read = partial(self.topic_messages, session)
                files.write([table[topic] for topic in changed], read)
        files.session = session

    def purge_superseded(self, session: Session) -> int:
        """Purge all of superseded messages but the words that are shown; see `purge`."""
        shown = self.superseded(session)
        changed = [message for edit in self.edits(session) for message in edit.changed]
        stale = [m for m in changed if m.text != REMOVED and m != shown[m.seq]]
        refs = self._refs_of(session, shown)
        if not stale and all(m.text == REMOVED for m in self._read(TRANSCRIPT, refs)):
            return 0
        return self.purge(plan_purge(self.log, session, refs, stale=stale))

    def _refs_of(self, session: Session, numbers: Iterable[int]) -> list[str]:
        refs = self.transcript_refs(session)
        return [refs[number - 1] for number in sorted(set(numbers))]

    @staticmethod
    def _check(session: Session, number: int) -> None:
        if not 1 <= number <= session.count:
            raise IndexError(f"the conversation has messages m1 to m{session.count}, not m{number}")

    def _read(self, chain: str, refs: Sequence[str]) -> list[StoredMessage]:
        kept = self._kept.messages
        found = kept.get_all(refs)
        if missing := [ref for ref in refs if ref not in found]:
            for ref, row in zip(missing, self.log.read(chain, missing), strict=True):
                found[ref] = from_row(row)
                kept.put(ref, found[ref])
        return [found[ref] for ref in refs]


def _fold_topics(rows: Sequence[Row], base: TopicTable | None) -> TopicTable:
    # A topic keeps what it does not know, but is no tombstone once it is written again.
    return TopicTable.fold(({k: v for k, v in r.items() if k != PURGED} for r in rows), base)


def _fold_days(rows: Sequence[Row], base: Sequence[str] | None) -> Sequence[str]:
    return [*(base or ()), *(row["time"][:10] for row in rows)]
