"""What others did with a session, taken over: other writers, and the application by its edits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AnyMessage

from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update
from topicloom.nodes.workspace import Workspace
from topicloom.state.journal import JournalEntry
from topicloom.state.messages import split_visible
from topicloom.state.rounds import LOOK_BACK
from topicloom.state.session import Session, Turn
from topicloom.state.superseding import NO_EDIT
from topicloom.storage.sessions import SessionStore
from topicloom.storage.superseding import supersede
from topicloom.storage.writers import Taken

Replay = Callable[[dict[str, Any], Sequence[JournalEntry]], tuple[dict[str, Any], tuple[str, ...]]]
"""Makes edits of a journal in a document; returns it, and what was wrong with some of them."""


def report_taken(
    taken: Sequence[Taken], document: Any, replay: Replay | None
) -> tuple[tuple[str, ...], Update]:
    """What was taken over from other writers, in words for the receipt, and the update of the
    document by their edits of it.
    """
    events, update = list[str](), Update()
    for messages, journal in taken:
        what = f"{messages} messages of it" if messages else "its changes"
        events.append(f"another writer came first: {what} were taken over")
        if journal and replay is not None:
            document, errors = replay(document or {}, journal)
            update["document"] = document
            events += [f"an edit of another writer could not be made: {e}" for e in errors]
    return tuple(events), update


def show_newest(store: SessionStore, session: Session, keep: int) -> list[AnyMessage]:
    """The newest rounds that are stored, for the `messages` channel to show.

    They take the place of all others by `Overwrite`: otherwise LangGraph would stream them as if
    they were new.
    """
    newest = store.messages(session, session.count - max(LOOK_BACK, keep) + 1)
    return list(split_visible([stored.message for stored in newest], keep)[1])


def take_later_edits(
    deps: Deps, workspace: Workspace, session: Session, turn: Turn, messages: Sequence[AnyMessage]
) -> tuple[Session, Turn, Sequence[AnyMessage]]:
    """Take in what tools and hooks edited since the turn began; nothing, in the usual turn."""
    edit, shown = workspace.find_edits(session, messages, deps.settings.on_edit)
    if edit == NO_EDIT:
        return session, turn, messages
    session = supersede(workspace.store, session, edit)
    turn = turn.model_copy(update={"events": (*turn.events, *edit.describe())})
    return session, turn, shown
