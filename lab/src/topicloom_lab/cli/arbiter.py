"""`topicloom eval arbiter`: what an arbiter makes of tasks that go on in new words.

Each case of `task_flow.jsonl`, written by hand, is a short conversation with the user's next
message. Half of them go on in new words (to split there is a false split), half begin something new
in similar words (not to is a false merge). They test; nothing may be trained or tuned on them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

from topicloom.boundary.adsorber import Adsorber
from topicloom.boundary.policy import AdsorberPolicy, BoundaryQuestion
from topicloom.graph.deps import open_adsorber
from topicloom.index.encoders import default_embedder
from topicloom.roles.arbiter import ARBITER
from topicloom.settings import Settings
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.stored_message import StoredMessage
from topicloom_lab.cli.output import make_table, open_figures, show_mean
from topicloom_lab.cli.roles import ask_role
from topicloom_lab.opened import ModelOptions, Row, Rows

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


_POLICIES = {
    "grey zone, the default": AdsorberPolicy(),
    "grey zone from .05": AdsorberPolicy(low=0.05),
    "always asked": ALWAYS,
}
"""Who is asked about."""


def run_arbiter(model: ModelOptions | None, out: Path | None, *, as_json: bool) -> None:
    """Ask about every case, and print the verdicts and the splits that follow from them.

    Without a model, these are the boundary model's own.

    Raises:
        ConfigurationError: If no such model can be opened, or the results are something else's.
        StorageUnavailableError: If a result cannot be written.
    """
    console, cases, found = open_figures(as_json=as_json), task_flow_cases(), list[Row]()
    if model is not None:
        rows, ask = Rows(out, {"model": model.name}), _asker(model)
        makers = [partial(ask, q) for case in cases if (q := question_of(case, ALWAYS))]
        found = rows.complete([case.id for case in cases], makers, console, "cases")
        console.print(verdicts(cases, found))
    console.print(splits(cases, found))


def _asker(options: ModelOptions) -> Callable[[BoundaryQuestion], Row]:
    """A model that plays the arbiter; a cross-encoder is named as in the settings."""
    for prefix, make in ARBITER.named.items():
        if options.name.startswith(prefix):
            scorer = make(options.name.removeprefix(prefix), 600.0)
            return lambda question: {"continues": scorer.call(question).value, "calls": []}
    opened = options.open()

    def ask(question: BoundaryQuestion) -> Row:
        row = ask_role(ARBITER.name, question, opened, Settings())
        # A remark says that the answer could not be read, and the boundary model's stands.
        unread = row["failure"] or row["remarks"]
        return {"continues": None if unread else float(row["value"])} | row

    return ask


def verdicts(cases: Sequence[Case], rows: Sequence[Row]) -> Table:
    """What was said, by language and by what is right."""
    groups: dict[tuple[str, bool], list[Row]] = {}
    for case, row in zip(cases, rows, strict=True):
        groups.setdefault((case.language, case.continues), []).append(row)
    lines = []
    for (language, expected), group in groups.items():
        said = [None if r["continues"] is None else r["continues"] >= 0.5 for r in group]
        counts = len(group), said.count(expected), said.count(None)
        calls = [call for row in group for call in row["calls"]]
        means = (show_mean(calls, key) for key in ("read", "cached", "seconds"))
        what = f"{language}, {'go on' if expected else 'begin something new'}"
        lines.append((what, *map(str, counts), *means))
    heads = ("asked", "right", "unread", "tokens read", "cached", "seconds")
    return make_table("The arbiter's verdicts", ("cases", *heads), lines)


def splits(cases: Sequence[Case], rows: Sequence[Row]) -> Table:
    """False splits and merges where the cases are split, without the arbiter and with it."""
    said = {c.message.text: r["continues"] for c, r in zip(cases, rows, strict=bool(rows))}
    lines = []
    for name, policy in _POLICIES.items() if rows else ():
        asked = sum(question_of(case, policy) is not None for case in cases)
        mistakes = count_mistakes(opens_with(policy, said), cases)
        lines.append((name, str(asked), *map(str, mistakes)))
    alone = count_mistakes(opens_with(AdsorberPolicy(), {}), cases)
    lines.append(("nobody is asked", "-", *map(str, alone)))
    going_on = sum(case.continues for case in cases)
    heads = f"of {going_on} going on, split", f"of {len(cases) - going_on} new, merged"
    return make_table("What is split, looking back", ("policy", "asked about", *heads), lines)
