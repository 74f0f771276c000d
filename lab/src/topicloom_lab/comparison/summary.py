"""Means over the cells of a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Self

import numpy as np

from topicloom_lab.comparison.config import name_of
from topicloom_lab.comparison.measures import QuestionResult
from topicloom_lab.comparison.results import Cell
from topicloom_lab.strategies.catalogue import STRATEGIES

OURS = "topicloom"
_SAMPLES = 2_000
"""Resamples of an interval."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One strategy on one source under one budget."""

    source: str
    strategy: str
    budget: int
    cells: tuple[Cell, ...]
    """Finished ones; one a conversation."""

    @property
    def asked(self) -> list[QuestionResult]:
        """All questions."""
        return [row for cell in self.cells for row in cell.asked]

    @property
    def recall(self) -> float:
        """Mean share of the evidence in the context."""
        return mean(row.recall for row in self.asked)

    @property
    def whole(self) -> float:
        """Share of questions with all of it."""
        return mean(row.whole for row in self.asked)

    @property
    def tokens(self) -> float:
        """Mean tokens of a context."""
        return mean(row.tokens for row in self.asked)

    @property
    def calls(self) -> Mapping[str, float]:
        """Calls of models by role, for a question: those made while listening shared out."""
        total = Counter[str]()
        for cell in self.cells:
            total.update(cell.calls)
            for row in cell.asked:
                total.update(row.calls)
        return {role: count / len(self.asked) for role, count in sorted(total.items())}

    def mean_of(self, name: str) -> float | None:
        """Mean of a figure of `QuestionResult` over the questions that have it; None if none has.

        Of what is true or false it is the share: no question has `judged` if no model judges.
        """
        found = [v for row in self.asked if (v := getattr(row, name)) is not None]
        return mean(found) if found else None

    def by_category(self) -> dict[str, float]:
        """Mean recall by category of question."""
        groups: dict[str, list[float]] = {}
        for row in self.asked:
            groups.setdefault(row.category, []).append(row.recall)
        return {name: mean(group) for name, group in sorted(groups.items())}

    def recalls(self) -> dict[tuple[str, str], float]:
        """Recall of each question, by conversation and question."""
        return {(c.conversation, row.question): row.recall for c in self.cells for row in c.asked}


@dataclass(frozen=True, slots=True)
class Lead:
    """The lead of one strategy over another, question by question."""

    other: str
    by: float
    """Difference of mean recall; negative if it is behind."""
    low: float
    high: float
    """Ends of the interval of 95 %, over resampled questions."""

    @classmethod
    def of(cls, ours: Summary, other: Summary, seed: int) -> Self:
        """Compare two strategies on the questions that both were asked; see `mean_interval`."""
        first, second = ours.recalls(), other.recalls()
        gaps = [first[key] - second[key] for key in first if key in second]
        return cls(other.strategy, *mean_interval(gaps, seed))


def mean_interval(values: Sequence[float], seed: int) -> tuple[float, float, float]:
    """The mean of some values, and the ends of its interval of 95 %.

    Args:
        values: One at least.
        seed: Of the resampling (Efron 1979, the percentile interval).
    """
    known = np.array(values)
    picks = np.random.default_rng(seed).integers(0, len(known), (_SAMPLES, len(known)))
    low, high = np.quantile(known[picks].mean(axis=1), (0.025, 0.975))
    return float(known.mean()), float(low), float(high)


def summaries(cells: Iterable[Cell]) -> list[Summary]:
    """Cells put together by source, strategy and budget, in the order of sources and catalogue.

    Failed cells are left out, and so are strategies without a cell.
    """
    groups: dict[tuple[str, str, int], list[Cell]] = {}
    for cell in cells:
        if cell.failure is None and cell.asked and cell.strategy in STRATEGIES:
            groups.setdefault((cell.source, cell.strategy, cell.budget), []).append(cell)
    sources = list(dict.fromkeys(source for source, _, _ in groups))
    names = list(STRATEGIES)
    keys = sorted(groups, key=lambda k: (sources.index(k[0]), names.index(k[1]), k[2]))
    return [Summary(*key, tuple(groups[key])) for key in keys]


def best_other(ours: Summary, all_of_them: Sequence[Summary]) -> Summary | None:
    """The best of the other strategies that keep to the budget; None if there is no other."""
    others = [
        s
        for s in all_of_them
        if (s.source, s.budget) == (ours.source, ours.budget)
        and s.strategy != ours.strategy
        and STRATEGIES[s.strategy].limited
    ]
    return max(others, key=lambda s: s.recall, default=None)


def recall_lines(cells: Sequence[Cell]) -> list[str]:
    """Recall of all strategies as lines for the terminal, the best at the largest budget first."""
    found = summaries(cells)
    lines = []
    for source in dict.fromkeys(s.source for s in found):
        here = [s for s in found if s.source == source]
        budgets = sorted({s.budget for s in here})
        tokens = ", ".join(f"{b:,}" for b in budgets)
        lines += ["", f"{name_of(source)}: evidence recall at {tokens} tokens"]
        ranked = sorted(here, key=lambda s: (-s.budget, -s.recall))
        for name in dict.fromkeys(s.strategy for s in ranked):
            by_budget = {s.budget: s.recall for s in here if s.strategy == name}
            figures = (f"{by_budget[b]:.3f}" if b in by_budget else "    -" for b in budgets)
            lines.append(f"  {name:<18}{'  '.join(figures)}")
    return lines


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown whose first column is text and whose others are figures."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    cells = ([" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
