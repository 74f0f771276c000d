"""What is quoted in a turn of a user's other threads, behind what the thread itself recalls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from langgraph.store.base import BaseStore

from topicloom.context.transcript import shorten
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import graph_store, read_store
from topicloom.nodes.workspace import Workspace
from topicloom.search.time_expressions import Days
from topicloom.state.recall import Note
from topicloom.state.session import Session, Turn
from topicloom.state.thread_quotes import ThreadQuote

_QUOTE = 160
"""Tokens of a message of another thread that are quoted at most."""


def quote_other_threads(
    deps: Deps, workspace: Workspace, session: Session, turn: Turn, note: Note
) -> Note:
    """The note of a turn with what the user's other threads know, as far as there is room.

    They have a share of what a turn may recall (`Settings.across_share`).
    """
    store, sought = workspace.store, turn.sought
    shown = [q for n in store.notes(session) for q in n.other_threads]

    def find(kept: BaseStore) -> list[ThreadQuote]:
        found = list[ThreadQuote]()
        if deps.settings.facts:
            found += deps.user.find_facts(kept, store, session, sought, shown)
        if deps.settings.across_threads == "all":
            days = Days.of(turn.lookup.days)
            found += deps.user.find_messages(kept, session, sought, days, shown)
        return found

    found = read_store(graph_store(), workspace, find)
    if not found:
        return note
    drafted = note.model_copy(update={"other_threads": tuple(found)})
    (filled,) = read_thread_quotes(deps, graph_store(), workspace, session, [drafted])
    return note.model_copy(update={"other_threads": _cut(deps, filled)})


def _cut(deps: Deps, filled: Note) -> tuple[ThreadQuote, ...]:
    """The quotes that there is room for, the first ones first."""
    window = deps.window
    room = round(deps.settings.across_share * window.recall)
    quotes = list[ThreadQuote]()
    for quote in filled.other_threads:
        room -= window.counter.text(quote.text) + 8
        if room < 0:
            break
        quotes.append(quote)
    return tuple(quotes)


def read_thread_quotes(
    deps: Deps,
    kept: BaseStore | None,
    workspace: Workspace,
    session: Session,
    notes: Sequence[Note],
) -> list[Note]:
    """The notes with what they quote of other threads, as it is there now."""
    quotes = [quote for note in notes for quote in note.other_threads]
    read = partial(deps.user.read, store=workspace.store, session=session, quotes=quotes)
    texts = read_store(kept, workspace, read) or {}

    def fill(quote: ThreadQuote) -> ThreadQuote:
        text = shorten(texts[quote], _QUOTE, deps.window.counter.text)
        return quote.model_copy(update={"text": text})

    return [
        note.model_copy(
            update={"other_threads": tuple(fill(q) for q in note.other_threads if q in texts)}
        )
        for note in notes
    ]
