"""Hand-written cases of task flow: does a message go on with the task, whatever its words?

Each case of `cases/task_flow.jsonl` is a short conversation with the user's next message. Half of
them go on in new words (to split there is a false split), half begin something new in similar
words (not to split there is a false merge). They test; nothing may be trained or tuned on them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from topicloom.state.rounds import Round, group_rounds
from topicloom.state.stored_message import StoredMessage

_FILE = Path(__file__).parents[1] / "boundary" / "cases" / "task_flow.jsonl"

Opens = Callable[[Sequence[Round], StoredMessage], bool]
"""Whether a message begins a topic, by the rounds before it; as `Adsorber.opens`."""


@dataclass(frozen=True, slots=True)
class Case:
    """One message and whether it goes on."""

    id: str
    language: Literal["en", "zh"]
    rounds: tuple[Round, ...]
    """What was said before; none of it opens a topic but the first message."""
    message: StoredMessage
    """The user's next message."""
    continues: bool
    """What is expected."""
    why: str
    """Why, in the case's own language or in English."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Mistakes of a rule over some cases, by their ids."""

    false_splits: tuple[str, ...]
    """Cases that go on and were split off."""
    false_merges: tuple[str, ...]
    """Cases that begin something new and were not split off."""
    going_on: int
    """Cases that go on."""
    new: int
    """Cases that begin something new."""

    def __str__(self) -> str:
        split = f"{len(self.false_splits)} of {self.going_on} that go on are split"
        return f"{split}, {len(self.false_merges)} of {self.new} new ones are merged"


@cache
def task_flow_cases() -> tuple[Case, ...]:
    """All cases, in the order of the file."""
    rows = [json.loads(line) for line in _FILE.read_text("utf-8").splitlines()]
    return tuple(_case(row) for row in rows)


def tally(opens: Opens, cases: Sequence[Case]) -> Tally:
    """Ask a rule about each case, and count the two kinds of mistake apart."""
    split = {case.id for case in cases if opens(case.rounds, case.message)}
    return Tally(
        tuple(c.id for c in cases if c.continues and c.id in split),
        tuple(c.id for c in cases if not c.continues and c.id not in split),
        sum(c.continues for c in cases),
        sum(not c.continues for c in cases),
    )


def _case(row: dict[str, object]) -> Case:
    said = [*_messages(row["history"]), row["next"]]
    messages = [_record(number, message) for number, message in enumerate(said, start=1)]
    language = row["lang"]
    assert language in ("en", "zh")
    return Case(
        id=str(row["id"]),
        language=language,
        rounds=tuple(group_rounds(messages[:-1])),
        message=messages[-1],
        continues=row["continues"] is True,
        why=str(row["why"]),
    )


def _messages(history: object) -> list[object]:
    assert isinstance(history, list)
    return history


def _record(number: int, message: object) -> StoredMessage:
    assert isinstance(message, dict)
    # A minute apart: no pause hints at a boundary.
    time = f"2026-03-02T10:{number:02}:00+01:00"
    opens = number == 1
    return StoredMessage(
        seq=number, role=message["role"], text=message["text"], time=time, opens=opens
    )
