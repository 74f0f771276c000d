"""`topicloom eval arbiter`: what an arbiter makes of tasks that go on in new words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rich.table import Table

from topicloom.boundary.policy import AdsorberPolicy, BoundaryQuestion
from topicloom.roles.arbiter import ARBITER
from topicloom.settings import Settings
from topicloom_lab.cli.output import make_table, open_figures, show_mean
from topicloom_lab.cli.roles import ask_role
from topicloom_lab.opened import ModelOptions, Row, Rows
from topicloom_lab.task_flow import (
    ALWAYS,
    Case,
    count_mistakes,
    opens_with,
    question_of,
    task_flow_cases,
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
