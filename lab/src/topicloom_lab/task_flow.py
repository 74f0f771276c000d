"""Hand-written cases of task flow: does a message go on with the task, whatever its words?

Each case of `task_flow.jsonl` is a short conversation with the user's next message. Half of
them go on in new words (to split there is a false split), half begin something new in similar
words (not to split there is a false merge). They test; nothing may be trained or tuned on them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from topicloom.boundary.adsorber import Adsorber
from topicloom.boundary.policy import AdsorberPolicy, BoundaryQuestion
from topicloom.graph.deps import open_adsorber
from topicloom.index.encoders import default_embedder
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.stored_message import StoredMessage

ALWAYS = AdsorberPolicy(low=0.0, high=1.0)
"""Asks however sure the boundary model is."""
Opens = Callable[[Sequence[Round], StoredMessage], bool]
"""True if a message begins a topic, by the rounds before it."""


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


@cache
def task_flow_cases() -> tuple[Case, ...]:
    """All cases, in the order of the file."""
    text = files("topicloom_lab").joinpath("task_flow.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return tuple(_case(row) for row in rows)


def count_mistakes(opens: Opens, cases: Sequence[Case]) -> tuple[int, int]:
    """False splits of a rule, then its false merges: where it begins a topic and where not."""
    wrong = [case.continues for case in cases if opens(case.rounds, case.message) == case.continues]
    return wrong.count(True), wrong.count(False)


def question_of(case: Case, policy: AdsorberPolicy) -> BoundaryQuestion | None:
    """What an arbiter is asked about a case under a policy; None if nobody is."""
    last = Round((case.message,), case.rounds[-1].reply)
    return _adsorber(policy).doubts([], [*case.rounds, last]).get(case.message.seq)


def opens_with(policy: AdsorberPolicy, rulings: Mapping[str, float | None]) -> Opens:
    """A split as an arbiter's rulings have it where it is in doubt.

    Args:
        policy: Says who is in doubt.
        rulings: By the request, how likely it goes on; None or no entry where nothing was said.
    """
    adsorber = _adsorber(policy)

    def opens(rounds: Sequence[Round], message: StoredMessage) -> bool:
        last = Round((message,), rounds[-1].reply)
        doubt = adsorber.doubts([], [*rounds, last]).get(message.seq)
        continues = rulings.get(doubt.request) if doubt else None
        if continues is not None:
            last = replace(last, ruling="opens" if continues < 0.5 else "continues")
        before, after = adsorber.segments([*rounds, last])[-2:]
        return before != after

    return opens


@cache
def _adsorber(policy: AdsorberPolicy) -> Adsorber:
    return open_adsorber(policy, default_embedder())


def _case(row: dict[str, Any]) -> Case:
    said = [*row["history"], row["next"]]
    messages = [_message(number, message) for number, message in enumerate(said, start=1)]
    return Case(
        id=row["id"],
        language=row["lang"],
        rounds=tuple(group_rounds(messages[:-1])),
        message=messages[-1],
        continues=row["continues"],
        why=row["why"],
    )


def _message(number: int, message: dict[str, Any]) -> StoredMessage:
    # A minute apart: no pause hints at a boundary.
    time = f"2026-03-02T10:{number:02}:00+01:00"
    opens = number == 1
    return StoredMessage(
        seq=number, role=message["role"], text=message["text"], time=time, opens=opens
    )
