"""What others did with a session, taken over: other writers, and the application by its edits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AnyMessage

from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update
from topicloom.nodes.workspace import Workspace
from topicloom.state.identity import align_ids, count_unchanged, find_edit
from topicloom.state.journal import JournalEntry
from topicloom.state.messages import split_visible
from topicloom.state.rounds import LOOK_BACK
from topicloom.state.session import Session, Turn
from topicloom.state.superseding import Edit
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


def find_edits(
    deps: Deps,
    workspace: Workspace,
    session: Session,
    messages: Sequence[AnyMessage],
    *,
    answer: bool = False,
    cleared: bool | None = False,
) -> tuple[Edit, Sequence[AnyMessage]]:
    """Find what the application changed of earlier messages in the `messages` channel.

    To `answer`, the user may send an earlier message again, in other words. The input `cleared` all
    earlier messages if it removes them; None for a run without an input, where they were removed if
    the channel holds none of them.

    Returns:
        The edit, and the messages that are in view: the very ones that were given if all are.
    """
    if not session.count or deps.settings.on_edit == "ignore":
        return Edit(), messages
    recent = workspace.recent(session, messages, first=session.shown)
    if cleared is None:
        ids = {m.id for m in messages}
        cleared = bool(session.shown and all(m.source not in ids for m in recent))
    first, given = 1 if cleared else session.shown, messages
    if first == 1:
        recent = workspace.store.messages(session)
        messages = align_ids(messages, recent)
    edit, messages = find_edit(messages, recent, first, answer=answer)
    same = [m.id for m in messages] == [m.id for m in given]
    return edit, given if same else messages


def take_later_edits(
    deps: Deps, workspace: Workspace, session: Session, turn: Turn, messages: Sequence[AnyMessage]
) -> tuple[Session, Turn, Sequence[AnyMessage]]:
    """Take in what tools and hooks edited since the turn began; nothing, in the usual turn."""
    if turn.compared and count_unchanged(messages, turn.compared) == turn.compared[0]:
        return session, turn, messages
    edit, messages = find_edits(deps, workspace, session, messages)
    session = supersede(workspace.store, session, edit)
    turn = turn.model_copy(update={"events": (*turn.events, *edit.describe())})
    return session, turn, messages
