"""What is worth telling of a session, drawn from its receipts, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from topicloom.cli._excerpts import TermRarity, find_excerpt, shorten
from topicloom.cli._views import format_message_day, render_topics
from topicloom.cli.console import render_heading
from topicloom.context.tokens import choose_counter
from topicloom.state.recall import TopicNote, parse_message_number
from topicloom.state.receipt import Receipt
from topicloom.state.session import Session
from topicloom.storage.sessions import SessionStore

_SLEEP = 10
"""Turns from which a sleep is worth telling of."""


@dataclass(frozen=True, slots=True)
class Reactivation:
    """A topic that woke after a long sleep, for a turn that quoted it."""

    note: TopicNote
    """What was quoted."""
    asleep: int
    """Turns that it had slept."""
    user: str
    """Short id of the message that woke it."""


@dataclass(frozen=True, slots=True)
class SessionFigures:
    """A session in figures."""

    splits: int
    """How often messages moved into topics."""
    largest: int
    """Tokens of the largest main prompt."""
    wakings: tuple[Reactivation, ...]
    """Topics that woke after a sleep and were quoted, in order."""
    forgotten: tuple[Receipt, ...]
    """Turns that searched everything, in order."""


def summarize_session(receipts: Sequence[Receipt]) -> SessionFigures:
    """Draw up the account of a session's turns, in order."""
    return SessionFigures(
        splits=sum(bool(r.split) for r in receipts),
        largest=max((sum(r.sections.values()) for r in receipts), default=0),
        wakings=tuple(_find_reactivations(receipts)),
        forgotten=tuple(r for r in receipts if r.searches),
    )


def _find_reactivations(receipts: Sequence[Receipt]) -> Iterator[Reactivation]:
    awake_until: dict[str, int] = {}
    for receipt in receipts:
        quoted = {note.topic: note for note in receipt.quoted if note.quotes}
        for topic in receipt.woken:
            asleep = receipt.turn - awake_until.get(topic, receipt.turn)
            if topic in quoted and asleep >= _SLEEP:
                yield Reactivation(quoted[topic], asleep, receipt.user)
        awake_until |= dict.fromkeys((*receipt.active, *receipt.slept), receipt.turn)


_TOPICS = 14
_WAKINGS, _FORGOTTEN = 3, 3
_TELLING = 8.0
"""What a message and its quote share (`Rarity.shared`) when that is worth showing."""


def render_account(session: Session, store: SessionStore, width: int) -> RenderableType:
    """What became of a conversation: figures, topics over time, what woke, what was searched."""
    account = summarize_session(store.receipts(session))
    parts: list[RenderableType] = [
        render_heading("What became of the conversation"),
        _render_figures(session, store, account),
        Text(),
        render_topics(session, store, width, most=_TOPICS),
    ]
    moments = MomentRenderer(session, store, width, TermRarity(store.records(session)))
    wakings = moments.best(account.wakings)
    if wakings:
        parts.append(render_heading("Topics that slept, and woke when they were needed"))
        parts.append(_make_table([moments.waking(w) for w in wakings]))
    if account.forgotten:
        parts.append(render_heading("“I told you”: moments in which everything was searched"))
        parts.append(_make_table([moments.search(r) for r in account.forgotten[:_FORGOTTEN]]))
    return Group(*parts)


def render_next_steps(kept: str | None, *, composed: bool) -> RenderableType:
    """What to do after a replay.

    Args:
        kept: The session that it was kept as, if it was.
        composed: Whether a model writes the replies.
    """
    if kept is None:
        steps = [
            ("topicloom chat", "talk in a session of your own"),
            ("topicloom replay --session lake", "keep this one, to go on with: chat lake"),
        ]
    else:
        steps = [
            (f"topicloom chat {quote(kept)}", "go on with this conversation"),
            (f"topicloom transcript {quote(kept)} --topic t1", "read a topic word for word"),
        ]
    if not composed:
        steps.append(("export TOPICLOOM_MODEL=openai:gpt-5-mini OPENAI_API_KEY=…", "real replies"))
    table = Table.grid(padding=(0, 2))
    for command, what in steps:
        table.add_row(Text(command, style="cyan"), Text(what, style="dim"))
    return Group(render_heading("Next"), table)


def _render_figures(session: Session, store: SessionStore, account: SessionFigures) -> Text:
    if not session.count:
        return Text("Nothing was said.")
    first, last = store.record(session, 1), store.record(session, session.count)
    return Text.assemble(
        (f"{session.count:,} messages", "bold"),
        f", {format_message_day(first)} to {format_message_day(last)}, went into ",
        (f"{len(store.topic_table(session))} topics", "bold"),
        f" in {account.splits} splits; the newest {session.count - session.tail + 1} are in no"
        f" topic yet. All of it is about {_count_tokens(session, store):,} tokens; no prompt was"
        f" larger than {account.largest:,}. Every original is still there, word for word.",
    )


def _count_tokens(session: Session, store: SessionStore) -> int:
    """Tokens of the whole conversation, to the nearest thousand."""
    counter = choose_counter("")
    return round(sum(counter.message(r.message) for r in store.records(session)), -3)


def _make_table(rows: Sequence[tuple[str, Text]]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, justify="right", width=5, style="dim")
    table.add_column(no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


@dataclass(frozen=True, slots=True)
class MomentRenderer:
    """Shows what brought something back."""

    session: Session
    store: SessionStore
    width: int
    rarity: TermRarity

    def best(self, wakings: Sequence[Reactivation]) -> list[Reactivation]:
        """Wakings whose quotes have most to do with what woke them; each topic once."""
        worth = {w: self._worth(w) for w in wakings}
        ranked = sorted((w for w in wakings if worth[w] >= _TELLING), key=lambda w: -worth[w])
        once = {w.note.topic: w for w in reversed(ranked)}
        return [w for w in ranked if once[w.note.topic] is w][:_WAKINGS]

    def _worth(self, waking: Reactivation) -> float:
        cause = self.store.record(self.session, parse_message_number(waking.user)).text
        quotes = [
            self.store.record(self.session, parse_message_number(i)) for i in waking.note.quotes
        ]
        return max(self.rarity.shared(cause, quote.text) for quote in quotes)

    def waking(self, waking: Reactivation) -> tuple[str, Text]:
        """A topic that woke."""
        cause = self.store.record(self.session, parse_message_number(waking.user))
        after = f" woke {shorten(waking.note.name, 26)}, asleep for {waking.asleep} turns"
        said = shorten(cause.text, max(20, self.width - 10 - Text(after).cell_len))
        text = Text.assemble(f"“{said}”", (after, "dim"))
        return cause.id, self._quotes(text, cause.text, [waking.note], most=1)

    def search(self, receipt: Receipt) -> tuple[str, Text]:
        """A search through everything."""
        cause = self.store.record(self.session, parse_message_number(receipt.user))
        notes = [note for note in receipt.quoted if note.quotes]
        text = Text(f"“{shorten(cause.text, self.width - 10)}”")
        if not notes:
            text.append("\nnothing was found", style="yellow")
        return cause.id, self._quotes(text, cause.text, notes, most=2)

    def _quotes(self, text: Text, wanted: str, notes: Sequence[TopicNote], most: int) -> Text:
        """Adds the quotes that are nearest to what was said."""
        names = {parse_message_number(i): note.name for note in notes for i in note.quotes}
        records = [self.store.record(self.session, number) for number in names]
        said = [r for r in records if r.role == "user"] or records
        for record in self.rarity.nearest(wanted, said)[:most]:
            head = f"\n→ {record.id}, {record.day}, {shorten(names[record.seq], 26)} "
            room = max(20, self.width - 9 - Text(head.strip()).cell_len)
            text.append(head, style="green").append(f"“{find_excerpt(record.text, wanted, room)}”")
        return text
