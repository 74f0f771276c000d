"""The account of a session: figures, topics, and turns in which something came back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from topicloom.cli._excerpts import TermRarity, find_excerpt, shorten
from topicloom.cli._views import format_day, render_topics
from topicloom.cli.console import render_heading
from topicloom.context.tokens import choose_counter
from topicloom.graph.memory import Memory
from topicloom.state.recall import TopicNote, parse_message_number
from topicloom.state.receipt import Receipt
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.storage.sessions import SessionStore

_LONG = 10
"""Dormant turns from which a reactivation is shown."""


@dataclass(frozen=True, slots=True)
class Reactivation:
    """A topic that was dormant for long, and was activated and quoted in one turn."""

    note: TopicNote
    """Its quotes."""
    dormant_turns: int
    user: str
    """Short id of the user's message in that turn."""


@dataclass(frozen=True, slots=True)
class SessionFigures:
    """A session in figures."""

    splits: int
    largest: int
    """Tokens of the largest main prompt."""
    reactivations: tuple[Reactivation, ...]
    forgotten: tuple[Receipt, ...]
    """Turns that searched everything."""


def summarize_session(receipts: Sequence[Receipt]) -> SessionFigures:
    """The figures of a session, from all of its receipts in order."""
    return SessionFigures(
        splits=sum(bool(r.split) for r in receipts),
        largest=max((sum(r.sections.values()) for r in receipts), default=0),
        reactivations=tuple(_find_reactivations(receipts)),
        forgotten=tuple(r for r in receipts if r.searches),
    )


def _find_reactivations(receipts: Sequence[Receipt]) -> Iterator[Reactivation]:
    active_until: dict[str, int] = {}
    for receipt in receipts:
        quoted = {note.topic: note for note in receipt.quoted if note.quotes}
        for topic in receipt.woken:
            dormant = receipt.turn - active_until.get(topic, receipt.turn)
            if topic in quoted and dormant >= _LONG:
                yield Reactivation(quoted[topic], dormant, receipt.user)
        active_until |= dict.fromkeys((*receipt.active, *receipt.slept), receipt.turn)


_TOPICS = 14
_REACTIVATIONS, _FORGOTTEN = 3, 3
_SHARED = 8.0
"""Score of a message and its quote (`TermRarity.score_shared`) from which they are shown."""


def render_account(
    memory: Memory, session: Session, store: SessionStore, width: int
) -> RenderableType:
    """The account of a conversation: figures, topics over time, reactivations, searches."""
    account = summarize_session(store.receipts(session))
    parts: list[RenderableType] = [
        render_heading("What became of the conversation"),
        _render_figures(session, store, account),
        Text(),
        render_topics(memory, width, most=_TOPICS),
    ]
    moments = MomentRenderer(session, store, width, TermRarity(store.messages(session)))
    reactivations = moments.select_best(account.reactivations)
    if reactivations:
        parts.append(render_heading("Dormant topics that came back when they were needed"))
        parts.append(_make_table(map(moments.render_reactivation, reactivations)))
    if account.forgotten:
        parts.append(render_heading("“I told you”: moments in which everything was searched"))
        parts.append(_make_table(map(moments.render_search, account.forgotten[:_FORGOTTEN])))
    return Group(*parts)


def render_next_steps(kept: str | None, *, composed: bool) -> RenderableType:
    """Commands to try after a replay that was kept as this session, if it was kept."""
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
    first, last = store.message(session, 1), store.message(session, session.count)
    counter = choose_counter("")
    tokens = round(sum(counter.message(m.message) for m in store.messages(session)), -3)
    return Text.assemble(
        (f"{session.count:,} messages", "bold"),
        f", {format_day(first.day)} to {format_day(last.day)}, went into ",
        (f"{len(store.topic_table(session))} topics", "bold"),
        f" in {account.splits} splits; the newest {session.count - session.tail + 1} are in no"
        f" topic yet. All of it is about {tokens:,} tokens; no prompt was"
        f" larger than {account.largest:,}. Every original is still there, word for word.",
    )


def _make_table(rows: Iterable[tuple[str, Text]]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, justify="right", width=5, style="dim")
    table.add_column(no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


@dataclass(frozen=True, slots=True)
class MomentRenderer:
    """Renders turns in which something came back."""

    session: Session
    store: SessionStore
    width: int
    rarity: TermRarity

    def select_best(self, found: Sequence[Reactivation]) -> list[Reactivation]:
        """The reactivations whose quotes share most with their cause; each topic once."""
        rated = [(self._rate(r), r) for r in found]
        rated.sort(key=lambda pair: -pair[0])
        ranked = [r for score, r in rated if score >= _SHARED]
        once = {r.note.topic: r for r in reversed(ranked)}
        return [r for r in ranked if once[r.note.topic] is r][:_REACTIVATIONS]

    def _rate(self, found: Reactivation) -> float:
        cause = self._find(found.user).text
        return max(self.rarity.score_shared(cause, self._find(i).text) for i in found.note.quotes)

    def _find(self, message_id: str) -> StoredMessage:
        return self.store.message(self.session, parse_message_number(message_id))

    def render_reactivation(self, found: Reactivation) -> tuple[str, Text]:
        """A reactivation, with the id of the message that caused it."""
        cause = self._find(found.user)
        name = shorten(found.note.name, 26)
        after = f" activated {name}, dormant for {found.dormant_turns} turns"
        said = shorten(cause.text, max(20, self.width - 10 - Text(after).cell_len))
        text = Text.assemble(f"“{said}”", (after, "dim"))
        return cause.id, self._append_quotes(text, cause.text, [found.note], most=1)

    def render_search(self, receipt: Receipt) -> tuple[str, Text]:
        """A search through everything, with the id of the message that caused it."""
        cause = self._find(receipt.user)
        notes = [note for note in receipt.quoted if note.quotes]
        text = Text(f"“{shorten(cause.text, self.width - 10)}”")
        if not notes:
            text.append("\nnothing was found", style="yellow")
        return cause.id, self._append_quotes(text, cause.text, notes, most=2)

    def _append_quotes(
        self, text: Text, wanted: str, notes: Sequence[TopicNote], most: int
    ) -> Text:
        names = {i: note.name for note in notes for i in note.quotes}
        messages = [self._find(i) for i in names]
        said = [r for r in messages if r.role == "user"] or messages
        for message in self.rarity.rank_nearest(wanted, said)[:most]:
            head = f"\n→ {message.id}, {message.day}, {shorten(names[message.id], 26)} "
            room = max(20, self.width - 9 - Text(head.strip()).cell_len)
            text.append(head, style="green").append(f"“{find_excerpt(message.text, wanted, room)}”")
        return text
