"""What has to be purged of a session once it is too old: on all branches, and of any turn that
failed. Younger messages stay, also where they repeat what goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from topicloom.state.retention import Cutoffs, is_before
from topicloom.state.session import Session
from topicloom.state.stored_message import REMOVED, StoredMessage
from topicloom.storage.base import SUPERSEDED, TRANSCRIPT, TURNS
from topicloom.storage.log import SessionLog
from topicloom.storage.message_rows import Row, from_row
from topicloom.storage.purging import PurgePlan, plan_purge, read_all_rows

_FRAME = ("turn", "user", "started", "seconds")
"""Fields that stay of a receipt."""


def plan_expiry(
    log: SessionLog, session: Session, cutoffs: Cutoffs
) -> tuple[PurgePlan, tuple[StoredMessage, ...], int]:
    """The plan by which old messages and receipts end, these messages, and how many receipts end.

    Raises:
        StorageError: A message cannot be read, so that it is unknown where else it stands.
    """
    said = {
        ref: row
        for ref, row in read_all_rows(log, TRANSCRIPT).items()
        if "text" in row and is_before(row["time"], cutoffs.messages)
    }
    edits = read_all_rows(log, SUPERSEDED).values()
    changed = (StoredMessage.model_validate(m) for edit in edits for m in edit.get("changed", ()))
    stale = [m for m in changed if m.text != REMOVED and is_before(m.time, cutoffs.messages)]
    plan = PurgePlan((), (), (), {}, session)
    if said or stale:
        plan = plan_purge(log, session, list(said), stale=stale)
    receipts = {
        ref: left
        for ref, row in read_all_rows(log, TURNS).items()
        if is_before(row["started"], cutoffs.receipts) and (left := _strip(row)) != row
    }
    # Of copies by other writers, the old ones are among the messages: a younger one stays.
    gone = plan.entries.get(TRANSCRIPT, {})
    gone = {ref: left for ref, left in gone.items() if ref in said or "text" in left}
    turns = {**plan.entries.get(TURNS, {}), **receipts}
    entries = {**plan.entries, TURNS: turns, TRANSCRIPT: gone}
    plan = replace(plan, entries={chain: e for chain, e in entries.items() if e})
    return plan, tuple(map(from_row, said.values())), len(receipts)


def _strip(row: Row) -> dict[str, Any]:
    return {**{key: row[key] for key in _FRAME if key in row}, "scores": {}}
