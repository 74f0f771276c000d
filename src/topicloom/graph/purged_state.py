"""A thread's state as it may be shown: without what was purged behind its checkpoint.

A purge by a session's storage alone reaches no checkpoint. Until the thread's next turn its newest
one still has the last messages as they were, and older ones keep them. So whoever reads a state
compares the digest of purges in it with that of the storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from topicloom.nodes.workspace import Workspaces
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage

MADE_IN_A_TURN = ("readings", "calls", "layers", "plan")
"""Channels with what a turn makes for itself."""


def hide_purged(
    state: StateSnapshot, workspaces: Workspaces, store: BaseStore | None
) -> StateSnapshot:
    """The state of a checkpoint, in which what was purged since reads `REMOVED`."""
    thread = state.config["configurable"].get("thread_id")
    if not (state.values and thread) or (workspaces.storage is None and store is None):
        return state
    session = Session.model_validate(state.values.get("session") or {"id": str(thread)})
    kept = workspaces.open(session.id, store).store
    if kept.log.purges == session.purges:
        return state
    return state._replace(values={**state.values, **_hide(state.values, kept.purged())})


def _hide(values: Mapping[str, Any], purged: Mapping[str, StoredMessage]) -> dict[str, Any]:
    """What is shown in the place of some channels."""
    shown, turn = values.get("messages") or [], values.get("turn")
    hidden: dict[str, Any] = {
        "messages": [purged[m.id].message if m.id in purged else m for m in shown]
    }
    if turn and turn.get("user") in {m.seq for m in purged.values()}:
        hidden["turn"] = {**turn, "query": ""}
    # What the turn read may repeat it.
    return hidden | {name: None for name in MADE_IN_A_TURN if values.get(name)}
