"""`topicloom eval arbiter`: what an arbiter makes of tasks that go on in new words.

Each conversation of `task_flow.jsonl`, written by hand, has two next messages of the user. Half of
the conversations go on (to split there is a false split), half begin something new (not to is a
false merge). In the hard message of the two the words point the wrong way: it goes on in new words,
or begins something new in similar ones. In the easy one they point the right way. So over both,
neither likeness of words nor its opposite tells what goes on, and an AUC above theirs is judgement.
They test; nothing may be trained or tuned on them.
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

from topicloom import (
    ARBITER,
    AdsorberPolicy,
    BoundaryQuestion,
    Round,
    Settings,
    StoredMessage,
    default_embedder,
)
from topicloom.lab import Adsorber, group_rounds, open_adsorber
from topicloom_lab.cli.output import make_table, open_figures, show_mean
from topicloom_lab.cli.roles import ask_role
from topicloom_lab.opened import ModelOptions, Row, Rows

ALWAYS = AdsorberPolicy(low=0.0, high=1.0)
"""Asks however sure the boundary model is."""
Kind = Literal["hard", "easy"]
"""Whether the words of a message point the wrong way, or the right one."""
Opens = Callable[[Sequence[Round], StoredMessage], bool]
"""True if a message begins a topic, by the rounds before it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One message and whether it goes on."""

    id: str
    kind: Kind
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
    """The hard cases in the order of the file, then the easy ones of the same conversations."""
    text = files("topicloom_lab").joinpath("task_flow.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    easy = [row | row["easy"] | {"id": f"{row['id']}-easy"} for row in rows]
    return (*(_case(row, "hard") for row in rows), *(_case(row, "easy") for row in easy))


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
        return adsorber.continuity([*rounds, last])[-1] < 0

    return opens


@cache
def _adsorber(policy: AdsorberPolicy) -> Adsorber:
    return open_adsorber(policy, default_embedder())


def _case(row: dict[str, Any], kind: Kind) -> Case:
    said = [*row["history"], row["next"]]
    messages = [_message(number, message) for number, message in enumerate(said, start=1)]
    return Case(
        id=row["id"],
        kind=kind,
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
    """Ask about every case, and print the verdicts, their AUC and the splits that follow from them.

    Without a model, the AUC and the splits are the boundary model's own.

    Raises:
        ConfigurationError: If no such model can be opened, or the results are something else's.
        StorageUnavailableError: If a result cannot be written.
    """
    console, cases, found = open_figures(as_json=as_json), task_flow_cases(), list[Row]()
    if model is not None:
        rows, ask = Rows(out, {"model": model.name}), _asker(model)
        makers = [partial(ask, _always_asked(case)) for case in cases]
        found = rows.complete([case.id for case in cases], makers, console, "cases")
        console.print(verdicts(cases, found))
    console.print(ranking(cases, found))
    for title, chosen in _choices(cases).items():
        console.print(splits(cases, found, chosen, title))


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
    """What was said, by kind, by language and by what is right."""
    groups: dict[tuple[Kind, str, bool], list[Row]] = {}
    for case, row in zip(cases, rows, strict=True):
        groups.setdefault((case.kind, case.language, case.continues), []).append(row)
    lines = []
    for (kind, language, expected), group in groups.items():
        said = [None if r["continues"] is None else r["continues"] >= 0.5 for r in group]
        counts = len(group), said.count(expected), said.count(None)
        calls = [call for row in group for call in row["calls"]]
        means = (show_mean(calls, key) for key in ("read", "cached", "seconds"))
        what = f"{kind}, {language}, {'go on' if expected else 'begin something new'}"
        lines.append((what, *map(str, counts), *means))
    heads = ("asked", "right", "unread", "tokens read", "cached", "seconds")
    return make_table("The arbiter's verdicts", ("cases", *heads), lines)


def ranking(cases: Sequence[Case], rows: Sequence[Row]) -> Table:
    """AUC of telling what goes on, of the arbiter if it was asked, and of what it has to beat."""
    asked = [_always_asked(case) for case in cases]
    priors = [question.prior for question in asked]
    cosines = [likeness(question) for question in asked]
    scores = {"boundary model": priors, "cosine": cosines, "inverted cosine": [-c for c in cosines]}
    if rows:
        said = [row["continues"] for row in rows]
        # What was not judged is left to the boundary model.
        arbiter = [p if one is None else one for one, p in zip(said, priors, strict=True)]
        scores = {"arbiter": arbiter} | scores
    choices = _choices(cases)
    lines = [
        (name, *(f"{measure_auc(cases, values, chosen):.3f}" for chosen in choices.values()))
        for name, values in scores.items()
    ]
    return make_table("AUC of telling what goes on", ("by", *choices), lines)


def measure_auc(cases: Sequence[Case], scores: Sequence[float], chosen: Sequence[Case]) -> float:
    """How often a case that goes on has a higher score than one that begins something new.

    Args:
        cases: All cases.
        scores: How likely each goes on, in any unit; equal ones count half.
        chosen: The cases that are compared, of both outcomes.
    """
    from sklearn.metrics import roc_auc_score

    score = dict(zip((case.id for case in cases), scores, strict=True))
    truth = [case.continues for case in chosen]
    return float(roc_auc_score(truth, [score[case.id] for case in chosen]))


def likeness(question: BoundaryQuestion) -> float:
    """Cosine of the request and of the queries before it, as the arbiter is shown them."""
    request, before = default_embedder().embed([question.request, question.summary])
    return float(request @ before)


def splits(cases: Sequence[Case], rows: Sequence[Row], chosen: Sequence[Case], title: str) -> Table:
    """False splits and merges of some cases when they are split, without the arbiter and with it.

    Args:
        cases: All cases.
        rows: What the arbiter said of all; empty if nobody was asked.
        chosen: The cases that are counted.
        title: What they are called.
    """
    said = {c.message.text: r["continues"] for c, r in zip(cases, rows, strict=bool(rows))}
    lines = []
    for name, policy in _POLICIES.items() if rows else ():
        asked = sum(question_of(case, policy) is not None for case in chosen)
        mistakes = count_mistakes(opens_with(policy, said), chosen)
        lines.append((name, str(asked), *map(str, mistakes)))
    alone = count_mistakes(opens_with(AdsorberPolicy(), {}), chosen)
    lines.append(("nobody is asked", "-", *map(str, alone)))
    going_on = sum(case.continues for case in chosen)
    heads = f"of {going_on} going on, split", f"of {len(chosen) - going_on} new, merged"
    title = f"What is split, looking back: {title}"
    return make_table(title, ("policy", "asked about", *heads), lines)


def _choices(cases: Sequence[Case]) -> dict[str, Sequence[Case]]:
    hard = [case for case in cases if case.kind == "hard"]
    easy = [case for case in cases if case.kind == "easy"]
    return {"hard": hard, "easy": easy, "both": cases}


def _always_asked(case: Case) -> BoundaryQuestion:
    question = question_of(case, ALWAYS)
    if question is None:
        raise ValueError(f"{case.id} says nothing that could be judged: give it a longer message")
    return question
