"""Ranks recorded conversations without a session: what each step brings, kind by kind.

    python lab/benchmarks/ranking.py chat=locomo.jsonl meetings=qmsum.jsonl ... [--questions 20]

Evidence recall under some budgets of the package's ranking (`topicloom.search.ranking`), of the
same without each of its steps, and of flat searches, for each kind. "left out" has the numbers that
were best on all other kinds, among those of `CANDIDATES`. The last rows say what is quoted with
excerpts of long messages and without: whole messages, tokens of the evidence, answers, tokens that
are shown and the share of these that is evidence. Vectors are made once and kept in a folder, which
several runs may share. What a quote costs beside its line in a session (number, day, heading of its
topic) is 3 tokens here, as it came to in LoCoMo (2.8) and REALTALK. Of topics nothing is known:
`topicloom eval memory` has the last word.

A question that is a turn of the conversation (`asked_at`) is asked in its place: only what was said
before is ranked. With `--recent N` the newest N messages before it are in view, as they are in a
session: they are ranked like all others, but are not quoted again, and what is in view is found.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean

import numpy as np

from topicloom import default_embedder
from topicloom.lab import MEETING, RECALL, TALK, Recipe
from topicloom_lab.comparison.results import mean_interval, table
from topicloom_lab.kept_vectors import KeptEmbedder
from topicloom_lab.ranked_questions import BUDGETS, FLAT, HALF, Case, Recalls, read

CANDIDATES = [
    dict(zip(("near", "user", "reach", "pull"), numbers, strict=True))
    for numbers in itertools.product((1.0, 2.0, 3.0), (1.0, 2.0, 3.0), (40.0, 80.0), (15.0, 30.0))
]
"""Numbers that are tried in the place of those for talk of two; meetings keep theirs."""


def make_variants() -> dict[str, Recipe]:
    """The ranking as it ships, and without each of its steps."""
    return {"as shipped": RECALL} | {
        f"without {step.__name__}": replace(
            RECALL, steps=tuple(other for other in RECALL.steps if other is not step)
        )
        for step in RECALL.steps
    }


def figures(rows: Sequence[Sequence[float]]) -> str:
    """The mean of each column, of the rows that have it; a dash if none has."""
    columns = np.array(rows).T
    known = [column[~np.isnan(column)] for column in columns]
    return " / ".join(f"{column.mean():.3f}" if len(column) else "-" for column in known)


@dataclass(frozen=True)
class Measured:
    """What rankings and searches find for a question."""

    conversation: str
    rows: Recalls
    """Recall by budget of each of them."""
    tried: list[list[float]]
    """That of each of the `CANDIDATES`."""
    shown: dict[tuple[int, bool], tuple[float, ...]]
    """What is shown by budget, with excerpts and without; see `Case.shown`."""


def measure(case: Case) -> Measured:
    """Rank the messages of a question in all ways."""
    rows = {name: case.recalls(recipe) for name, recipe in make_variants().items()}
    shown = {
        (budget, in_part): case.shown(case.best(RECALL, budget), budget, in_part=in_part)
        for budget in BUDGETS
        for in_part in (False, True)
    }
    meeting = case.asked.messages.weights == MEETING
    tried = [
        rows["as shipped"]
        if meeting
        else case.recalls(replace(RECALL, weights=replace(TALK, **numbers)))
        for numbers in CANDIDATES
    ]
    return Measured(case.conversation, rows | case.others, tried, shown)


def main() -> None:
    """Read, choose and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", nargs="+", metavar="KIND=FILE", help="a kind may come twice")
    parser.add_argument("--questions", type=int, default=10**6, help="of a conversation at most")
    parser.add_argument("--recent", type=int, default=0, help="messages in view before a turn")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "ranking"))
    given = parser.parse_args()
    given.cache.mkdir(parents=True, exist_ok=True)
    kept = KeptEmbedder(default_embedder(), given.cache)
    found: dict[str, list[Measured]] = {}
    for kind, _, source in (pair.partition("=") for pair in given.sources):
        cases_of = read(kind, source, given.questions, kept, given.recent)
        found.setdefault(kind, []).extend(map(measure, cases_of))
        print(f"{kind}: {len(found[kind])} questions", flush=True)
    print(report(found))


def report(found: dict[str, list[Measured]]) -> str:
    """The table of all kinds, and the weights that were chosen without each."""
    worths = {
        kind: np.mean([m.tried for m in measured], axis=(0, 2)) for kind, measured in found.items()
    }
    chosen = {
        kind: int(np.sum([w for other, w in worths.items() if other != kind], axis=0).argmax())
        for kind in found
        if len(found) > 1
    }
    rows = {
        name: {kind: [m.rows[name] for m in measured] for kind, measured in found.items()}
        for name in next(iter(found.values()))[0].rows
    }
    if chosen:
        left_out = {k: [m.tried[chosen[k]] for m in measured] for k, measured in found.items()}
        rows = {"left out": left_out, **rows}
    lines = [[name, *(figures(by[k]) for k in found)] for name, by in rows.items()]
    lines += [
        [
            f"left out over the best other at {budget:,}",
            *(lead(rows, k, place, [m.conversation for m in ms]) for k, ms in found.items()),
        ]
        for place, budget in enumerate(BUDGETS)
        if chosen
    ]
    lines += [shown_line(found, *setup) for setup in itertools.product(BUDGETS, (False, True))]
    made = [f"{kind} left out: {CANDIDATES[i]}" for kind, i in chosen.items()]
    return "\n".join([table(["", *found], lines), "", *made])


def shown_line(found: dict[str, list[Measured]], budget: int, in_part: bool) -> list[str]:
    """Recall, share of the evidence's tokens, and of the answers that are shown, by kind."""
    name = "with excerpts" if in_part else "whole messages alone"
    cells = [f"{name} at {budget:,}: recall / tokens / answers; shown, of it evidence"]
    for measured in found.values():
        rows = [m.shown[budget, in_part] for m in measured]
        tokens, held = (sum(row[place] for row in rows) for place in (3, 4))
        beside = f"{tokens / len(rows):,.0f}, {held / max(1, tokens):.3f}"
        cells.append(f"{figures([row[:3] for row in rows])}; {beside}")
    return cells


def lead(
    rows: dict[str, dict[str, list[list[float]]]],
    kind: str,
    place: int,
    conversations: Sequence[str],
) -> str:
    """What "left out" finds more than the best flat search at a budget, with its interval.

    Questions of one conversation have much in common, which the interval does not know: so it also
    says in how many conversations it is ahead and behind.
    """
    ours, *others = (
        [recalls[place] for recalls in rows[name][kind]] for name in ("left out", *FLAT, HALF)
    )
    best = max(others, key=mean)
    gaps = [a - b for a, b in zip(ours, best, strict=True)]
    by, low, high = mean_interval(gaps, 0)
    sums: dict[str, float] = {}
    for conversation, gap in zip(conversations, gaps, strict=True):
        sums[conversation] = sums.get(conversation, 0.0) + gap
    ahead, behind = (sum(sign * total > 1e-9 for total in sums.values()) for sign in (1, -1))
    where = f"ahead in {ahead}, behind in {behind} of {len(sums)}"
    name = (*FLAT, HALF)[others.index(best)]
    return f"{by:+.3f} ({low:+.3f} to {high:+.3f}), {where}; {name}"


if __name__ == "__main__":
    main()
