"""What is wrong with a session that is stored, and making anew what the transcript still tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from topicloom.errors import StorageError
from topicloom.state.session import Session
from topicloom.storage.base import (
    CHANGES,
    EDITS,
    LEDGER,
    RANGES,
    ROSTER,
    SUPERSEDED,
    TRANSCRIPT,
    TURNS,
)
from topicloom.storage.log import SessionLog
from topicloom.storage.sessions import SessionStore
from topicloom.texts import FilledText

_ANEW = "all messages go back to the tail, and the next turns split them into topics anew"
_MENDS = {
    ROSTER: _ANEW,
    RANGES: _ANEW,
    LEDGER: "begins anew: nothing of the conversation is in it",
    TURNS: "goes on behind the receipts that are left",
    SUPERSEDED: "goes on behind the edits that are left, and all messages go back to the tail",
    EDITS: "goes on behind the edits that are left",
    CHANGES: "goes on behind the changes that are left",
}
_BACKUP = "restore it from a backup"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with a session."""

    place: str
    """The chain that it is in; `checkpoints` for a lack of them."""
    what: str
    mend: str = ""
    """What a repair does about it; "" where it can do nothing."""


def find_faults(session: Session, store: SessionStore) -> list[Fault]:
    """What is wrong with a session; reads all of it."""
    log, faults = store.log, list[Fault]()

    def read_chain(chain: str) -> object:
        return log.read(chain, log.refs(chain, getattr(session, chain)))

    checks: dict[str, Callable[[], object]] = {TRANSCRIPT: partial(store.originals, session)}
    for place, read in (checks | {c: partial(read_chain, c) for c in _MENDS}).items():
        try:
            read()
        except (StorageError, ValueError, KeyError) as error:
            faults.append(Fault(place, str(error), _MENDS.get(place, "")))
    known = "".join(fault.what for fault in faults)
    return faults + [Fault("storage", one) for one in log.reports() if one not in known]


def mend_session(session: Session, store: SessionStore, faults: Sequence[Fault]) -> Session:
    """The session with what could be made anew; nothing that is stored is removed or changed.

    Raises:
        StorageError: The transcript is damaged: all else is made of it.
    """
    broken = {fault.place for fault in faults}
    if TRANSCRIPT in broken:
        raise StorageError(
            "the transcript of session {session!r} is damaged: {problem}",
            session=session.id,
            problem=FilledText(_BACKUP),
        )
    for chain in broken & {TURNS, EDITS, SUPERSEDED, CHANGES}:
        session = session.model_copy(update={chain: _find_longest(store.log, chain)})
    if broken & {LEDGER, ROSTER, RANGES, SUPERSEDED}:
        session = session.model_copy(update={"ledger": None, "ledger_tokens": 0})
    if broken & {ROSTER, RANGES, SUPERSEDED}:
        empty: dict[str, Any] = {"roster": None, "ranges": None, "tail": 1, "view": 1, "active": {}}
        session = session.model_copy(update=empty)
    return session


def _find_longest(log: SessionLog, chain: str) -> str | None:
    """The head of the longest branch of a chain that can be read from its beginning."""
    prevs = log.entries(chain)
    readable, longest = log.readable(chain, list(prevs)), list[str]()
    for leaf in prevs.keys() - set(prevs.values()):
        ref, path = leaf, list[str]()
        while ref in prevs:
            path.append(ref) if ref in readable else path.clear()
            before = prevs[ref]
            if before is None and len(path) > len(longest):
                longest = path
            ref = before or ""
    return longest[0] if longest else None
