"""Runs cases one after another: a sample of them or all, with figures, and on from where it was."""

from __future__ import annotations

import json
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Outcome:
    """What came of a case."""

    problems: list[str] = field(default_factory=list)
    """Breaches in words; none if all held."""
    figures: Counter[str] = field(default_factory=Counter)
    """Counts to add up, such as kills; those whose name begins with `most` are maxima."""


@dataclass(frozen=True)
class Case:
    """One trial, by a name that says all that is needed to run it again."""

    name: str
    run: Callable[[], Outcome]

    @property
    def group(self) -> str:
        """The name without its last part."""
        return self.name.rpartition("/")[0]


@dataclass
class Campaign:
    """How cases are run, and what came of them so far."""

    seed: int = 0
    minutes: float | None = None
    """After so long no further case begins; None for no end."""
    log: Path | None = None
    """Keeps a line of JSON for each case; cases that stand in it are not run again."""
    done: dict[str, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the log."""
        if self.log is not None and self.log.exists():
            for row in map(json.loads, self.log.read_text("utf-8").splitlines()):
                self.done[row["case"]] = Outcome(row["problems"], Counter(row["figures"]))

    def sample(self, cases: Sequence[Case], count: int | None) -> list[Case]:
        """So many cases of each group, drawn by the seed; all of them for None."""
        groups: dict[str, list[Case]] = {}
        for case in cases:
            groups.setdefault(case.group, []).append(case)
        draw = random.Random(self.seed)
        return [
            case
            for group in groups.values()
            for case in (group if count is None else draw.sample(group, min(count, len(group))))
        ]

    def run(self, cases: Sequence[Case]) -> None:
        """Run what has not been run, in an order drawn by the seed, and tell how far it is."""
        left = [case for case in cases if case.name not in self.done]
        random.Random(self.seed).shuffle(left)
        began = told = time.monotonic()
        for number, case in enumerate(left, 1):
            if self.minutes is not None and time.monotonic() - began > 60 * self.minutes:
                break
            outcome = _run(case)
            self._keep(case, outcome)
            for problem in outcome.problems:
                _tell(f"{case.name}: {problem}")
            if time.monotonic() - told > 10 or number == len(left):
                told = time.monotonic()
                _tell(f"{number} of {len(left)} cases, {self.failed} failed, {told - began:.0f} s")

    @property
    def failed(self) -> int:
        """Cases in which something did not hold."""
        return sum(bool(outcome.problems) for outcome in self.done.values())

    def figures(self) -> dict[str, dict[str, int]]:
        """Cases, failures and counts by group."""
        groups: dict[str, Counter[str]] = {}
        for name, outcome in self.done.items():
            sums = groups.setdefault(name.rpartition("/")[0], Counter())
            sums.update(cases=1, failed=int(bool(outcome.problems)))
            for key, value in outcome.figures.items():
                sums[key] = max(sums[key], value) if key.startswith("most") else sums[key] + value
        return {group: dict(sums) for group, sums in sorted(groups.items())}

    def _keep(self, case: Case, outcome: Outcome) -> None:
        self.done[case.name] = outcome
        if self.log is not None:
            row = {"case": case.name, "problems": outcome.problems, "figures": outcome.figures}
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def problems_of(campaign: Campaign) -> Iterator[str]:
    """Every problem, with the case that had it."""
    for name, outcome in campaign.done.items():
        yield from (f"{name}: {problem}" for problem in outcome.problems)


def _run(case: Case) -> Outcome:
    try:
        return case.run()
    except Exception:  # noqa: BLE001 - the other cases are run all the same
        return Outcome([traceback.format_exc()[-2_000:]])


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
