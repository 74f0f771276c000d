"""The report of a comparison: Markdown, with figures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from topicloom import StorageUnavailableError
from topicloom_app.cli.console import count_of
from topicloom_lab.comparison.config import name_of
from topicloom_lab.comparison.figures import draw_figures
from topicloom_lab.comparison.measures import QuestionResult
from topicloom_lab.comparison.results import (
    OURS,
    Cell,
    Lead,
    Results,
    Summary,
    best_other,
    show_share,
    summaries,
    table,
)
from topicloom_lab.strategies.catalogue import STRATEGIES

_SAMPLES = 5
"""Failures shown of each source."""
_EQUAL = 0.0005
"""Difference of recall that three digits don't show."""
_ORACLE = (
    " No model answered: the *oracle reader* needs all of the evidence, or the answer itself, and "
    "overlooks nothing."
)


def write_report(results: Results) -> list[Path]:
    """Write `report.md` and the figures of finished cells; the files.

    Raises:
        ConfigurationError: If the results cannot be read.
        StorageUnavailableError: If something cannot be written.
    """
    cells = list(results.cells().values())
    figures = draw_figures(summaries(cells), results.folder)
    path = results.folder / "report.md"
    try:
        path.write_text(report_text(cells, results.run(), [f.name for f in figures]), "utf-8")
    except OSError as error:
        raise StorageUnavailableError(
            "{path} cannot be written: {error}", path=path, error=error
        ) from error
    return [path, *figures]


def report_text(cells: Sequence[Cell], run: dict[str, Any], figures: Sequence[str]) -> str:
    """The report of finished cells of a run (`Results.run`), with the names of its figures."""
    found = summaries(cells)
    parts = ["# Context strategies compared", _how_to_read(found)]
    parts += [f"![{name.partition('.')[0].replace('-', ' ')}]({name})" for name in figures]
    for source in dict.fromkeys(s.source for s in found):
        parts += _source([s for s in found if s.source == source], run.get("seed", 0))
    parts += ["## Strategies", _strategies(run), "## Made with", made_with(cells, run)]
    failed = [cell for cell in cells if cell.failure is not None]
    if failed:
        lines = [f"- {c.conversation}, {c.strategy} at {c.budget:,}: {c.failure}" for c in failed]
        parts += ["## Cells that failed", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def recall_table(here: Sequence[Summary]) -> str:
    """Recall of one source by strategy and budget, best first; the best of a budget is bold.

    What ignores the budget stands last and takes no part.
    """
    budgets = sorted({s.budget for s in here})
    cell = {(s.strategy, s.budget): s for s in here}
    names = list(dict.fromkeys(s.strategy for s in here))
    bounded = [n for n in names if STRATEGIES[n].limited]
    best = {b: max(cell[n, b].recall for n in bounded if (n, b) in cell) for b in budgets}
    means = {n: mean(s.recall for s in here if s.strategy == n) for n in names}
    ranked = sorted(names, key=lambda n: (n not in bounded, -means[n]))
    rows: list[list[str]] = []
    for name in ranked:
        rows.append([name])
        for budget in budgets:
            summary = cell.get((name, budget))
            if summary is None:
                rows[-1] += ["-"] * 4
                continue
            text = f"{summary.recall:.3f}"
            wins = name in bounded and summary.recall == best[budget]
            shown = f"{summary.tokens:,.0f}", show_share(summary.precision)
            rows[-1] += [f"**{text}**" if wins else text, f"{summary.whole:.3f}", *shown]
    heads = [h for b in budgets for h in (f"{b:,}", "all", "shown", "evidence")]
    return table(["strategy", *heads], rows)


def lead_table(here: Sequence[Summary], seed: int) -> str:
    """The lead of topicloom of the best other strategy, by budget; empty without it."""
    rows = []
    for ours in (s for s in here if s.strategy == OURS):
        other = best_other(ours, here)
        if other is None:
            continue
        lead = Lead.of(ours, other, seed)
        recalls = f"{ours.recall:.3f}", f"{lead.other} {other.recall:.3f}"
        interval = f"{lead.by:+.3f}", f"{lead.low:+.3f} to {lead.high:+.3f}"
        rows.append([f"{ours.budget:,}", *recalls, *interval, _verdict(lead)])
    heads = ["tokens", OURS, "best other", "lead", "95 %", ""]
    return table(heads, rows) if rows else ""


def _verdict(lead: Lead) -> str:
    if abs(lead.by) < _EQUAL:
        return "equal"
    if lead.by < 0:
        return "behind" if lead.high < 0 else "behind, within chance"
    return "ahead" if lead.low > 0 else "ahead, within chance"


def _source(here: Sequence[Summary], seed: int) -> list[str]:
    first = here[0]
    conversations, questions = len(first.cells), len(first.asked)
    history = sum(c.history for c in first.cells) / conversations
    parts = [
        f"## {name_of(first.source)}",
        f"{count_of(conversations, 'conversation')} of {history:,.0f} tokens on average, "
        f"{count_of(questions, 'question')} with evidence: one of them more or less is"
        f" {1 / questions:.3f} of a figure. A lead whose interval reaches below 0 may be chance.",
        recall_table(here),
    ]
    if leads := lead_table(here, seed):
        parts += [f"{OURS} against the best other strategy that keeps to the budget:", leads]
    budgets = sorted({s.budget for s in here})
    middle = [s for s in here if s.budget == budgets[len(budgets) // 2]]
    parts += [f"### At {middle[0].budget:,} tokens", _costs(middle)]
    if any(len(s.by_category()) > 1 for s in middle):
        parts += ["Recall by category:", _categories(middle)]
    if any(s.mean_of("f1") is not None for s in middle):
        parts += ["Answers of the reading model:", _answers(middle)]
    ours = next((s for s in middle if s.strategy == OURS), None)
    if ours is not None and not all(row.whole for row in ours.asked):
        parts += [f"What {OURS} missed, some of it:", _misses(ours)]
    return parts


def _costs(here: Sequence[Summary]) -> str:
    rows = []
    for s in here:
        heard = sum(c.heard for c in s.cells)
        calls = ", ".join(f"{count:.1f} {role}" for role, count in s.calls.items())
        rows.append(
            [
                s.strategy,
                f"{s.tokens:,.0f}",
                " / ".join(f"{s.mean_of(name):.0f}" for name in ("messages", "originals")),
                *(show_share(s.mean_of(name)) for name in ("shown", "answer_in")),
                f"{s.mean_of('oracle'):.2f}",
                calls or "none",
                " / ".join(f"{1_000 * sum(spent) / heard:.1f}" for spent in _times(s.cells)),
                " / ".join(f"{1_000 * mean(spent):.0f}" for spent in _times(s.asked)),
                f"{sum(c.written for c in s.cells) / heard:,.0f}",
            ]
        )
    heads = ("tokens", "messages / originals", "evidence's tokens in it", "answer in it")
    prices = ("calls a question", "ms a message, wall / CPU", "ms a question, wall / CPU")
    return table(["strategy", *heads, "oracle reader", *prices, "bytes a message"], rows)


def _times(measured: Sequence[Cell | QuestionResult]) -> tuple[list[float], list[float]]:
    """Seconds by the wall, and of the CPU."""
    return [m.seconds for m in measured], [m.cpu_seconds for m in measured]


def _categories(here: Sequence[Summary]) -> str:
    names = sorted({name for s in here for name in s.by_category()})
    found = [(s.strategy, s.by_category()) for s in here]
    rows = [[strategy, *(show_share(means.get(n)) for n in names)] for strategy, means in found]
    return table(["strategy", *names], rows)


def _answers(here: Sequence[Summary]) -> str:
    names = ("exact", "f1", "judged")
    rows = [[s.strategy, *(show_share(s.mean_of(name)) for name in names)] for s in here]
    return table(["strategy", "exact match", "F1", "judged right"], rows)


def _misses(ours: Summary) -> str:
    missed = [(c.conversation, row) for c in ours.cells for row in c.asked if not row.whole]
    lines = []
    for conversation, row in sorted(missed, key=lambda pair: pair[1].recall)[:_SAMPLES]:
        lost = [i for i in row.evidence if i not in row.found]
        shown = ", ".join(lost[:8]) + (" …" if len(lost) > 8 else "")
        tally = f"{len(row.found)} of {len(row.evidence)} found, missing {shown}"
        lines.append(f"- {conversation}, question {row.question} ({row.category}): {tally}")
    return "\n".join(lines)


def _how_to_read(found: Sequence[Summary]) -> str:
    graded = any(s.mean_of("f1") is not None for s in found)
    return (
        "Evidence recall is the mean share of the messages an answer rests on whose whole text "
        "stands in the context, under a budget in tokens (a CJK character or four others); *all* "
        "is the share of questions with all of it, *shown* the mean of the tokens in the context, "
        "and *evidence* the share of these that is evidence. Every strategy hears the same "
        "messages, has the same sentence encoder and is asked the same questions. Times leave out "
        "the vectors of messages and questions, which are made once and shared; who is the first "
        "to need others pays for them. Calls that were made while listening are shared out over "
        "the questions."
        f"{'' if graded else _ORACLE}"
    )


def _strategies(run: dict[str, Any]) -> str:
    left_out = run.get("left_out", {})
    named = [STRATEGIES[n] for n in run.get("strategies", STRATEGIES) if n in STRATEGIES]
    writer = "extracts stand in for a model" if run.get("model") is None else "by the model"
    lines = []
    for recipe in named:
        notes = [f"summaries: {writer}"] if recipe.sums_up else []
        notes += [] if recipe.limited else ["ignores the budget"]
        notes += [f"left out: {left_out[recipe.name]}"] if recipe.name in left_out else []
        lines.append(f"- `{recipe.name}`: {'; '.join([recipe.what, *notes])}")
    return "\n".join(lines)


def made_with(cells: Sequence[Cell], run: dict[str, Any]) -> str:
    """Versions, seed, machine and files, as a list."""
    codes = sorted({cell.code for cell in cells})
    lines = [
        ", ".join(f"{name} {number}" for name, number in run.get("versions", {}).items()),
        f"{run.get('machine', 'an unknown machine')}; seed {run.get('seed')}; "
        f"encoder {run.get('embedder')}; package files {', '.join(codes)}",
        *(f"{name_of(s)}: SHA-256 {digest}" for s, digest in run.get("files", {}).items()),
    ]
    return "\n".join(f"- {line}" for line in lines if line)
