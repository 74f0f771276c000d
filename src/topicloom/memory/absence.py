"""Explains why a turn did not quote a message, by its receipt, the topics and the index.

The answer is a step of the turn: the one that lost the message, or the one that showed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from topicloom.errors import InputError
from topicloom.memory.values import read_number
from topicloom.nodes.workspace import enter_all
from topicloom.search.message_search import Query
from topicloom.search.time_expressions import Days
from topicloom.state.lifecycle import TopicState, get_state
from topicloom.state.recall import parse_message_number
from topicloom.state.receipt import Receipt, list_quoted
from topicloom.state.session import Session
from topicloom.storage.sessions import SessionStore
from topicloom.topics.session_index import SessionIndex

AbsenceStep = Literal[
    "later",
    "unanswered",
    "removed",
    "in_view",
    "quoted",
    "quoted_before",
    "needs_nothing",
    "archived",
    "no_budget",
    "passed_over",
    "reader_failed",
    "asleep",
    "not_found",
]
"""In the order of a turn. `later`: said after it. `unanswered`: the turn only recorded. `removed`:
taken back or purged. The turn had it: `in_view`, in no topic yet; `quoted`; `quoted_before`, by an
earlier turn whose note still stood. It was lost: `needs_nothing`, it was taken for not needed, as
the turn's message needs nothing from earlier, or hardly this (`recall_least` in the settings);
`archived`, its topic was put away and nobody asked for what is; `no_budget`, found, but better ones
took the room; `passed_over`, a model that read its topic did not choose it, whether the index found
it or not. In the others the index did not find it, not among the best `FOUND`: `reader_failed`, the
model that was to read its topic failed; `asleep`, its topic was not read; `not_found`, its topic
was read without a model."""
FOUND = 200
"""Messages that an index is said to have found, the best for a turn."""


@dataclass(frozen=True, slots=True)
class Absence:
    """The reason why a turn did not quote a message."""

    message: str
    """Short id of the message."""
    turn: int
    """Number of the turn."""
    step: AbsenceStep
    """The step that lost it, or showed it."""
    topic: str = ""
    """Id of the topic that held it then; "" if none did."""
    place: int = 0
    """Its place among what the index finds for the turn's question now, from 1; 0 if it is not
    found."""


def explain_absence(
    turn: int, message_id: str, session: Session, store: SessionStore, full_index: SessionIndex
) -> Absence:
    """The reason why a turn did not quote a message; raises InputError if there is no such one."""
    number = read_number(message_id, session)
    *earlier, receipt = _find_receipts(store, session, turn)
    user = parse_message_number(receipt.user)
    edits = store.superseded(session)
    early: tuple[tuple[AbsenceStep, bool], ...] = (
        ("later", number > user),
        ("unanswered", not receipt.sections),
        ("removed", number in edits and edits[number] is None),
    )
    for step, holds in early:
        if holds:
            return Absence(message_id, turn, step)
    table = store.topic_table(session.model_copy(update={"roster": receipt.roster}))
    topic = table.get(store.ranges(session).topic_of(number) or "")
    place, needed = _find_place(message_id, receipt, session, store, full_index)
    state = get_state(topic, (*receipt.active, *receipt.deactivated)) if topic else "active"
    owner = topic.id if topic else ""
    lost: AbsenceStep | None = ("no_budget" if needed else "needs_nothing") if place else None
    step = find_step(number, receipt, earlier, owner, state, lost)
    return Absence(message_id, turn, step, owner, place)


def _find_receipts(store: SessionStore, session: Session, turn: int) -> list[Receipt]:
    """The receipt of a turn, behind those of turns before it."""
    found = [receipt for receipt in store.receipts(session) if receipt.turn <= turn]
    if not found or found[-1].turn != turn:
        raise InputError(
            "session {session!r} has no turn {turn} (there: 1 to {last})",
            session=session.id,
            turn=turn,
            last=session.turn,
        )
    return found


def _find_place(
    message_id: str,
    receipt: Receipt,
    session: Session,
    store: SessionStore,
    full_index: SessionIndex,
) -> tuple[int, bool]:
    """The place of a message among what the index finds for a turn now, and True if it is needed.

    The place is 0 if the index does not find it. Only what would fit the budget is said not to be
    needed: the rest has no room anyway.
    """
    search = receipt.searches[-1] if receipt.searches else None
    said = store.message(session, parse_message_number(receipt.user))
    sought = (search.query.strip() if search else "") or said.query or said.text
    days = Days.of(search.days) if search else None
    enter_all(full_index, store, session)
    weights = full_index.search(Query(sought, days, include_archived=True)).weights
    found = list(weights)[:FOUND]
    if message_id not in found:
        return 0, False
    query = Query(sought, days, from_user=not search, include_archived=True)
    by_user = full_index.search(query)
    # Where the budget ends, a message is worth half as much as the best.
    fits = 2 * weights[message_id] >= weights[found[0]]
    return found.index(message_id) + 1, message_id in by_user.weights or not fits


def find_step(
    number: int,
    receipt: Receipt,
    earlier: Iterable[Receipt],
    topic: str,
    state: TopicState,
    lost: AbsenceStep | None,
) -> AbsenceStep:
    """The step at which an answered turn lost an earlier message.

    Args:
        number: Of the message.
        receipt: Of the turn.
        earlier: Receipts of turns before it.
        topic: Id of the topic that held the message then; "" if none did.
        state: That topic's state before the turn ended.
        lost: Where the index lost it, if it finds the message for what the turn was about.
    """
    message = f"m{number}"
    if any(message in note.quotes for note in receipt.quoted):
        return "quoted"
    if not topic or receipt.view <= number:
        return "in_view"
    if message in list_quoted(receipt, earlier):
        return "quoted_before"
    if receipt.idle and not receipt.searches:
        return "needs_nothing"
    asked = receipt.searches and receipt.searches[-1].archived
    if state == "archived" and not asked and topic not in receipt.scores:
        return "archived"
    if message in receipt.crowded_out:
        return "no_budget"
    read = _judge_reading(receipt, topic)
    kept_out = receipt.reading.kept_out if receipt.reading else ()
    if message in kept_out and read in ("passed_over", "not_found"):
        return "passed_over"
    return lost or read


def _judge_reading(receipt: Receipt, topic: str) -> AbsenceStep:
    """The outcome of reading a topic whose reader did not name the message."""
    calls = [c for c in receipt.calls if c.role == "reader" and c.topic == topic]
    if any(c.failure for c in calls):
        return "reader_failed"
    if topic not in receipt.scores:
        return "asleep"
    return "passed_over" if any(c.model != "embedded" for c in calls) else "not_found"
