"""What is quoted in a turn of a user's other threads, behind what the thread itself recalls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from langgraph.store.base import BaseStore

from topicloom.context.transcript import shorten
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import read_graph_store
from topicloom.nodes.workspace import Workspace
from topicloom.search.time_expressions import Days
from topicloom.state.recall import Note
from topicloom.state.session import Session, Turn
from topicloom.state.thread_quotes import ThreadQuote

T = TypeVar("T")
_QUOTE = 160
"""Tokens of a message of another thread that are quoted at most."""


def quote_other_threads(
    deps: Deps, workspace: Workspace, session: Session, turn: Turn, note: Note
) -> Note:
    """The note of a turn with what the user's other threads know, as far as there is room.

    They have a share of what a turn may recall, and no more than the thread itself leaves of it.
    """
    settings, others = deps.settings, deps.others
    if not session.user_id or not turn.answer or turn.fast:
        return note
    shown = [q for n in workspace.store.notes(session) for q in n.elsewhere]
    found = list[ThreadQuote]()
    now = deps.clock()
    if settings.facts:
        facts = _read(
            workspace,
            session,
            lambda kept: others.find_facts(
                kept,
                workspace.store,
                session,
                turn.sought,
                shown,
                now,
                alone=settings.across_threads == "off",
            ),
        )
        found += facts or []
    if settings.across_threads == "all":
        days = Days.of(turn.searches[-1].days) if turn.searches else None
        find = partial(
            others.find_messages, session=session, query=turn.sought, days=days, shown=shown
        )
        found += _read(workspace, session, find) or []
    if not found:
        return note
    whole = note.model_copy(update={"elsewhere": tuple(found)})
    (filled,) = read_thread_quotes(deps, workspace, session, [whole])
    return note.model_copy(update={"elsewhere": _cut(deps, session, note, filled)})


def _cut(deps: Deps, session: Session, note: Note, filled: Note) -> tuple[ThreadQuote, ...]:
    """The quotes that there is room for, the first ones first."""
    window = deps.window
    room = round(deps.settings.across_share * window.recall)
    quotes = list[ThreadQuote]()
    for quote in filled.elsewhere:
        room -= window.counter.text(quote.text) + 8
        if room < 0:
            break
        quotes.append(quote)
    return tuple(quotes)


def read_thread_quotes(
    deps: Deps, workspace: Workspace, session: Session, notes: Sequence[Note]
) -> list[Note]:
    """The notes with what they quote of other threads, as it is there now."""
    quotes = [quote for note in notes for quote in note.elsewhere]
    if not (quotes and session.user_id):
        return [n.model_copy(update={"elsewhere": ()}) if n.elsewhere else n for n in notes]
    texts = _read(
        workspace,
        session,
        lambda kept: deps.others.read(
            kept,
            workspace.store,
            session,
            quotes,
            alone=deps.settings.across_threads == "off",
        ),
    )
    return fill_thread_quotes(deps, notes, texts or {})


def fill_thread_quotes(
    deps: Deps, notes: Sequence[Note], texts: dict[ThreadQuote, str]
) -> list[Note]:
    """The notes with the texts of what they quote of other threads; without what has none."""

    def fill(quote: ThreadQuote) -> ThreadQuote:
        text = shorten(texts[quote], _QUOTE, deps.window.counter.text)
        return quote.model_copy(update={"text": text})

    return [
        note.model_copy(update={"elsewhere": tuple(fill(q) for q in note.elsewhere if q in texts)})
        if note.elsewhere
        else note
        for note in notes
    ]


def update_profile(deps: Deps, workspace: Workspace, session: Session) -> None:
    """Have the user's other threads find what the thread says now.

    It is done within the run: an application may close its store as soon as a run has ended.
    """
    if session.user_id and deps.settings.across_threads == "all":
        _read(workspace, session, lambda kept: deps.others.update_profile(kept, session))


def _read(workspace: Workspace, session: Session, read: Callable[[BaseStore], T]) -> T | None:
    return read_graph_store(workspace, lambda kept, _: read(kept), session)
