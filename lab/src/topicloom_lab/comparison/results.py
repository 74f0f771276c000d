"""Results of a comparison: one JSON line for each cell that is finished, and means over cells."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Self

import numpy as np
from pydantic import BaseModel, ValidationError

from topicloom import ConfigurationError, StorageUnavailableError
from topicloom.lab import replace_file
from topicloom_lab.cli.output import write_lines
from topicloom_lab.comparison.config import name_of
from topicloom_lab.comparison.measures import QuestionResult, share_of_evidence
from topicloom_lab.strategies.catalogue import STRATEGIES

Key = tuple[str, str, str, int]
"""Source, conversation, strategy and budget of a cell."""


class Cell(BaseModel, frozen=True):
    """One conversation under one strategy and budget."""

    source: str
    """The file or generator, as the configuration names it."""
    conversation: str
    """Its id."""
    strategy: str
    budget: int
    code: str
    """The version of this package that made it: the beginning of a hash of its files."""
    heard: int
    """Messages that were fed."""
    history: int
    """Their tokens."""
    calls: Mapping[str, int] = {}
    """Calls of models while it listened, by role."""
    seconds: float = 0.0
    """Wall time of listening."""
    cpu_seconds: float = 0.0
    """CPU time of the process meanwhile."""
    written: int = 0
    """Bytes of what it left in its folder."""
    asked: tuple[QuestionResult, ...] = ()
    """Questions, in order."""
    failure: str | None = None
    """Why it came to nothing: the error that the strategy raised."""

    @property
    def key(self) -> Key:
        """The key that no other cell has."""
        return self.source, self.conversation, self.strategy, self.budget


class Results:
    """The folder of a comparison: `cells.jsonl`, `run.json`, and the report beside them."""

    def __init__(self, folder: Path) -> None:
        """The folder is made when something is written."""
        self.folder = folder
        self._cells = folder / "cells.jsonl"
        self._run = folder / "run.json"

    def cells(self) -> dict[Key, Cell]:
        """Cells by key, the newest of each, in the order in which they were finished.

        Raises:
            ConfigurationError: If the file holds something else.
        """
        found: dict[Key, Cell] = {}
        for cell in self._read():
            found.pop(cell.key, None)
            found[cell.key] = cell
        return found

    def add(self, cell: Cell) -> None:
        """Keep a cell.

        Raises:
            StorageUnavailableError: If it cannot be written.
        """
        write_lines(self._cells, [cell.model_dump_json(exclude_defaults=True)], add=True)

    def begin(self, run: Mapping[str, Any], fixed: tuple[str, ...]) -> None:
        """Write down what a run is made with, unless results of another one are here.

        Args:
            run: JSON data; `files` are fingerprints by name, and join those of before.
            fixed: Keys that have to be the same for results to belong together, as has each file.

        Raises:
            ConfigurationError: If they are not.
            StorageUnavailableError: If it cannot be written.
        """
        before = self.run()
        known, given = before.get("files", {}), run.get("files", {})
        pairs = {key: (before.get(key), run[key]) for key in fixed} if before else {}
        pairs |= {name: (known.get(name, digest), digest) for name, digest in given.items()}
        for name, (was, now) in pairs.items():
            if was != now:
                raise ConfigurationError(
                    "{folder} holds results with another {name} ({was!r}, now {now!r}): choose"
                    " another folder with --out, or delete that one",
                    folder=self.folder,
                    name=name,
                    was=was,
                    now=now,
                )
        run = {**run, "files": {**known, **given}}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(run, ensure_ascii=False, indent=2)
            replace_file(self._run, f"{text}\n".encode(), fsync=False)
            self._repair()
        except OSError as error:
            raise StorageUnavailableError(
                "{path} cannot be written: {error}", path=self._run, error=error
            ) from error

    def run(self) -> dict[str, Any]:
        """The data that `begin` wrote; empty if there is none.

        Raises:
            ConfigurationError: If the file holds something else.
        """
        if not self._run.exists():
            return {}
        try:
            found: dict[str, Any] = json.loads(self._run.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ConfigurationError(
                "{path} cannot be read: {error}", path=self._run, error=error
            ) from error
        return found

    def _read(self) -> Iterator[Cell]:
        if not self._cells.exists():
            return
        with self._cells.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    return  # it was being written when the run was stopped
                try:
                    yield Cell.model_validate_json(line)
                except ValidationError as error:
                    problem = error.errors()[0]
                    raise ConfigurationError(
                        "{path}, line {number} is no result: {problem}",
                        path=self._cells,
                        number=number,
                        problem=problem["msg"],
                    ) from error

    def _repair(self) -> None:
        """Take away a line that was being written when a run was stopped."""
        data = self._cells.read_bytes() if self._cells.exists() else b""
        if data and not data.endswith(b"\n"):
            self._cells.write_bytes(data[: data.rfind(b"\n") + 1])


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
    def precision(self) -> float | None:
        """Share of these tokens that is evidence; None if it was not counted."""
        return share_of_evidence((row.tokens, row.evidence_tokens) for row in self.asked)

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
    """The mean of values, one at least, and its interval of 95 % (percentile, Efron 1979)."""
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


_BESIDE = " (tokens shown, share of them that is evidence)"


def recall_lines(cells: Sequence[Cell]) -> list[str]:
    """Recall of all strategies as lines for the terminal, the best at the largest budget first.

    Beside it stand the tokens that are shown and the share of them that is evidence.
    """
    found = summaries(cells)
    lines = []
    for source in dict.fromkeys(s.source for s in found):
        here = [s for s in found if s.source == source]
        budgets = sorted({s.budget for s in here})
        tokens = ", ".join(f"{b:,}" for b in budgets)
        lines += ["", f"{name_of(source)}: evidence recall at {tokens} tokens{_BESIDE}"]
        ranked = sorted(here, key=lambda s: (-s.budget, -s.recall))
        for name in dict.fromkeys(s.strategy for s in ranked):
            by_budget = {s.budget: _show_recall(s) for s in here if s.strategy == name}
            figures = (f"{by_budget.get(b, '    -'):<21}" for b in budgets)
            lines.append(f"  {name:<18}{'  '.join(figures)}".rstrip())
    return lines


def _show_recall(summary: Summary) -> str:
    return f"{summary.recall:.3f} ({summary.tokens:,.0f}, {show_share(summary.precision)})"


def show_share(share: float | None) -> str:
    """A share as a cell of a table; a dash if there is none."""
    return "-" if share is None else f"{share:.3f}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown whose first column is text and whose others are figures."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    cells = ([" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
