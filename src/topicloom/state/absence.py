"""The step of a turn at which a message was lost, or how the turn had it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from topicloom.state.lifecycle import TopicState
from topicloom.state.receipt import Receipt

AbsenceStep = Literal[
    "later",
    "unanswered",
    "removed",
    "in_view",
    "quoted",
    "quoted_before",
    "archived",
    "no_budget",
    "reader_failed",
    "passed_over",
    "asleep",
    "not_found",
]
"""In the order of a turn. `later`: said after it. `unanswered`: the turn only recorded. `removed`:
taken back or purged. The turn had it: `in_view`, in no topic yet; `quoted`; `quoted_before`, by an
earlier turn whose note still stood. It was lost: `archived`, its topic was put away and nobody
asked for what is; `no_budget`, found, but better ones took the room; `reader_failed`,
`passed_over`, by a model that read its topic; `asleep`, its topic was not read; `not_found`, its
topic was read without a model. In the last four the index did not find it either."""


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a turn did not quote a message."""

    message: str
    """Short id of the message."""
    turn: int
    """Number of the turn."""
    step: AbsenceStep
    """Where it was lost, or how the turn had it."""
    topic: str = ""
    """Id of the topic that held it then; "" if none did."""
    place: int = 0
    """Its place among what the index finds for the turn's question now, from 1; 0 if it is not
    found."""


def find_step(
    number: int,
    receipt: Receipt,
    earlier: Iterable[Receipt],
    topic: str,
    state: TopicState,
    found: bool,
) -> AbsenceStep:
    """The step at which an answered turn lost an earlier message.

    Args:
        number: Of the message.
        receipt: Of the turn.
        earlier: Receipts of turns before it.
        topic: Id of the topic that held the message then; "" if none did.
        state: That topic's state before the turn ended.
        found: True if the index finds the message for what the turn was about.
    """
    message = f"m{number}"
    if any(message in note.quotes for note in receipt.quoted):
        return "quoted"
    if not topic or 0 < receipt.view <= number:
        return "in_view"
    standing = (r for r in earlier if 0 < receipt.noted <= int(r.user[1:]))
    if any(message in note.quotes for r in standing for note in r.quoted):
        return "quoted_before"
    asked = receipt.searches and receipt.searches[-1].archived
    if state == "archived" and not asked and topic not in receipt.scores:
        return "archived"
    if found or message in receipt.crowded_out:
        return "no_budget"
    return _judge_reading(receipt, topic)


def _judge_reading(receipt: Receipt, topic: str) -> AbsenceStep:
    """What became of the reading of a topic in which nothing pointed to the message."""
    calls = [c for c in receipt.calls if c.role == "reader" and c.topic == topic]
    if any(c.failure for c in calls):
        return "reader_failed"
    if topic not in receipt.scores:
        return "asleep"
    return "passed_over" if any(c.model != "embedded" for c in calls) else "not_found"
