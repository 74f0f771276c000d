"""What other writers did with a session since a run read its checkpoint, taken over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from topicloom.boundary.adsorber import LOOK_BACK
from topicloom.nodes.step import Update
from topicloom.state.messages import find_visible
from topicloom.state.receipt import JournalEntry
from topicloom.state.session import Session
from topicloom.storage.lines import Head, find_edits, merge_sessions
from topicloom.storage.sessions import SessionStore

Replay = Callable[[dict[str, Any], Sequence[JournalEntry]], tuple[dict[str, Any], tuple[str, ...]]]
"""Makes edits of a journal in a document; returns it, and what was wrong with some of them."""


def catch_up(
    store: SessionStore,
    session: Session,
    rivals: Sequence[Head],
    state: Mapping[str, Any],
    replay: Replay | None,
) -> tuple[Session, tuple[str, ...], Update]:
    """Put what a session has by itself behind what others did.

    Returns:
        The session, what happened, in words for the receipt, and the update of the document.
    """
    events, update = list[str](), Update()
    for rival in rivals:
        count, journal = session.count, find_edits(store, rival.session, session)
        session = merge_sessions(store, session, rival.session)
        events.append(
            f"another writer came first: {session.count - count} messages of it were taken over"
        )
        if journal and replay is not None:
            document = update.get("document") or state.get("document") or {}
            update["document"], errors = replay(document, journal)
            events += [f"an edit of another writer could not be made: {e}" for e in errors]
    return session, tuple(events), update


def show_newest(store: SessionStore, session: Session, keep: int) -> list[Any]:
    """An update of the `messages` channel after which it shows the newest rounds that are stored.

    They come as data: LangGraph would stream messages as if they were said just now.
    """
    newest = store.messages(session, session.count - max(LOOK_BACK, keep) + 1)
    messages: list[AnyMessage] = [stored.message for stored in newest]
    shown = messages[find_visible(messages, keep) :]
    return [
        {"type": "remove", "id": REMOVE_ALL_MESSAGES, "content": ""},
        *(m.model_dump() for m in shown),
    ]
