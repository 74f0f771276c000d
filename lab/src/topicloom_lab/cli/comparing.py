"""Doing `topicloom eval run`, `report` and `misses`: the evidence that a strategy did not find."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import mean
from typing import Any

from langchain_core.language_models import BaseChatModel
from rich.console import Console
from rich.text import Text

from topicloom import ConfigurationError, InputError, default_embedder
from topicloom.lab import open_model
from topicloom_app.cli.console import count_of, open_console, print_dim, print_json, to_one_line
from topicloom_app.recordings.conversations import Conversation
from topicloom_lab.comparison.config import (
    EXAMPLE,
    Comparison,
    fingerprint,
    load_source,
    name_of,
    read_comparison,
)
from topicloom_lab.comparison.measures import QuestionResult
from topicloom_lab.comparison.report import write_report
from topicloom_lab.comparison.results import Cell, Key, Results, Summary, recall_lines, summaries
from topicloom_lab.comparison.run import (
    Bench,
    code_hash,
    machine,
    open_cells,
    run_comparison,
    versions,
)
from topicloom_lab.strategies.base import line_of
from topicloom_lab.strategies.catalogue import STRATEGIES, find_strategies

_FIXED = ("seed", "questions", "embedder", "model")
"""Keys that have to be the same for results to belong together."""


def print_example() -> None:
    """Print the packaged configuration."""
    sys.stdout.write(EXAMPLE.read_text("utf-8"))


def run_config(
    config: Path | None, out: Path | None, again: Collection[str], *, as_json: bool
) -> None:
    """Run what a configuration asks for and is not finished, and write the report.

    Raises:
        ConfigurationError: If something in it cannot be used.
        NotAConversationError: If a file holds something else.
        StorageUnavailableError: If results cannot be written.
    """
    console = open_console(quiet=as_json)
    comparison = read_comparison(config or EXAMPLE, out)
    unknown = sorted(set(again) - set(comparison.strategies))
    if unknown:
        raise ConfigurationError(
            "--again {unknown}: no such strategy in this comparison", unknown=unknown[0]
        )
    results = Results(comparison.out)
    bench = _bench(comparison)
    results.begin(_record(comparison, bench), _FIXED)
    for name in comparison.strategies:
        if reason := STRATEGIES[name].missing:
            print_dim(console, f"{name} is left out: {reason}")
    _run(comparison, results, bench, again, console)
    _write(results, console, as_json=as_json)


def write_again(out: Path, *, as_json: bool) -> None:
    """Write the report of finished cells.

    Raises:
        ConfigurationError: If the folder holds no results.
        StorageUnavailableError: If the report cannot be written.
    """
    results = Results(out)
    if not results.cells():
        raise ConfigurationError("{out} holds no results: run `topicloom eval run` first", out=out)
    record = results.run()
    folder = record.get("folder")
    find_strategies(record.get("strategies", ()), Path(folder) if folder else None)
    _write(results, open_console(quiet=as_json), as_json=as_json)


def _run(
    comparison: Comparison,
    results: Results,
    bench: Bench,
    again: Collection[str],
    console: Console,
) -> None:
    waiting = list(open_cells(comparison, results, again))
    spent: dict[str, list[float]] = {}
    began = told = time.monotonic()
    with console.status("beginning") as status:

        def tell(strategy: str, done: int, steps: int) -> None:
            nonlocal told
            left = estimate_rest(waiting, spent)
            line = f"{strategy}: {done:,} of {steps:,} messages and questions{left}"
            status.update(line)
            if not console.is_terminal and time.monotonic() - told >= _SILENCE:
                print_dim(console, line)
                told = time.monotonic()

        for cell in run_comparison(comparison, results, bench, waiting[:], tell):
            now = time.monotonic()
            waiting.remove((cell.source, cell.conversation, cell.strategy, cell.budget))
            spent.setdefault(cell.strategy, []).append(now - began)
            began = now
            what = f"{cell.conversation}, {cell.strategy} at {cell.budget:,}"
            came = cell.failure or f"{spent[cell.strategy][-1]:.1f} s"
            left = estimate_rest(waiting, spent)
            print_dim(console, to_one_line(f"{what}: {came}{left}"))


_SILENCE = 15.0
"""Seconds after which a run that is piped says how far it is."""


def estimate_rest(waiting: Sequence[Key], spent: Mapping[str, Sequence[float]]) -> str:
    """The rest of a run in words, by what a cell of each strategy took; "" if nothing is known."""
    if not (waiting and spent):
        return ""
    usual = mean(mean(seconds) for seconds in spent.values())
    each = {name: mean(seconds) for name, seconds in spent.items()}
    seconds = sum(each.get(strategy, usual) for _, _, strategy, _ in waiting)
    rest = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
    return f"; {count_of(len(waiting), 'cell')} to go, about {rest}"


def _write(results: Results, console: Console, *, as_json: bool) -> None:
    if as_json:
        print_json(map(_to_row, summaries(results.cells().values())))
    for line in recall_lines(list(results.cells().values())):
        console.print(line, markup=False)
    for path in write_report(results):
        print_dim(console, str(path))


def _to_row(found: Summary) -> dict[str, Any]:
    where = {"source": name_of(found.source), "strategy": found.strategy, "budget": found.budget}
    figures = {"recall": found.recall, "all": found.whole}
    shown = {"tokens": found.tokens, "precision": found.precision}
    return where | {"questions": len(found.asked)} | figures | shown


def _bench(comparison: Comparison) -> Bench:
    embedder, code = default_embedder(), code_hash()
    chosen = comparison.model
    if chosen is None:
        return Bench(embedder, code)

    def opened(name: str) -> BaseChatModel:
        return open_model(name, base_url=chosen.base_url)

    chat = opened(chosen.name)
    if not chosen.answers:
        return Bench(embedder, code, chat)
    judge = opened(chosen.judge) if chosen.judge else chat
    return Bench(embedder, code, chat, reader=chat, judge=judge)


def _record(comparison: Comparison, bench: Bench) -> dict[str, object]:
    """The conditions of the run, by which it can be repeated."""
    return {
        "folder": str(comparison.folder.resolve()) if comparison.folder else None,
        "files": {s: fingerprint(s, comparison.folder) for s in comparison.files},
        "seed": comparison.seed,
        "questions": comparison.questions,
        "embedder": bench.embedder.fingerprint,
        "model": comparison.model.model_dump() if comparison.model else None,
        "strategies": list(comparison.strategies),
        "left_out": {n: reason for n in comparison.strategies if (reason := STRATEGIES[n].missing)},
        "budgets": list(comparison.budgets),
        "code": bench.code,
        "versions": versions(),
        "machine": machine(),
    }


_SHOWN = 110
"""Characters shown of a message."""
_ASKED = 300
"""Characters shown of a question."""
_LOST = 8
"""Messages shown of a question."""


@dataclass(frozen=True, slots=True)
class Miss:
    """One question whose evidence was not all found."""

    cell: Cell
    row: QuestionResult
    lost: Sequence[str]
    """Ids of messages that were not found; with another strategy, that this one did find."""


def show_misses(
    out: Path,
    strategy: str,
    against: str | None,
    source: str | None,
    budget: int | None,
    category: str | None,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Print misses, those with most lost evidence first; the arguments are the options.

    Raises:
        ConfigurationError: If the folder holds no such results.
    """
    console, results = open_console(), Results(out)
    cells = list(results.cells().values())
    if not any(cell.strategy == strategy for cell in cells):
        raise ConfigurationError(
            "{out} holds no results of {strategy!r}", out=out, strategy=strategy
        )
    others = {
        (c.source, c.conversation, c.budget, row.question): row.found
        for c in cells
        if c.strategy == against
        for row in c.asked
    }
    asked = [
        (cell, row)
        for cell in cells
        if cell.strategy == strategy and budget in (None, cell.budget)
        if source is None or source in cell.source
        for row in cell.asked
    ]
    found = list[Miss]()
    for cell, row in asked:
        if category in (None, row.category):
            place = cell.source, cell.conversation, cell.budget, row.question
            wanted = row.evidence if against is None else others.get(place, ())
            if lost := [i for i in row.evidence if i in wanted and i not in row.found]:
                found.append(Miss(cell, row, lost))
    found.sort(key=lambda m: -len(m.lost) / len(m.row.evidence))
    if as_json:
        print_json(map(_to_missed_row, found[:limit]))
        return
    console.print(f"{len(found)} of {len(asked)} questions with something missed")
    read = cache(partial(_read_source, results.run().get("folder")))
    for miss in found[:limit]:
        _show_miss(miss, read(miss.cell.source).get(miss.cell.conversation), console)


def _read_source(folder: str | None, source: str) -> dict[str, Conversation]:
    """The conversations of a source by id; none if it cannot be read any more."""
    try:
        return {c.id: c for c in load_source(source, Path(folder) if folder else None)}
    except InputError:
        return {}


def _to_missed_row(miss: Miss) -> dict[str, Any]:
    cell, row = miss.cell, miss.row
    place = {"source": name_of(cell.source), "conversation": cell.conversation}
    asked = {"budget": cell.budget, "question": row.question, "category": row.category}
    return place | asked | {"found": row.found, "missed": miss.lost}


def _show_miss(miss: Miss, conversation: Conversation | None, console: Console) -> None:
    cell, row = miss.cell, miss.row
    questions = {q.id: q.question for q in conversation.questions} if conversation else {}
    texts = {m.id: line_of(m) for m in conversation.messages} if conversation else {}
    where = f"{name_of(cell.source)} {cell.conversation} at {cell.budget:,}"
    tally = f"{len(row.found)} of {len(row.evidence)} found in {row.tokens:,} tokens"
    console.print()
    console.print(Text(f"{where}: {row.question} ({row.category})", style="bold"))
    if row.question in questions:
        console.print(Text(f"  {_cut(questions[row.question], _ASKED)}"))
    console.print(Text(f"  {tally}; missed:", style="dim"))
    for message_id in miss.lost[:_LOST]:
        console.print(Text(f"  [{message_id}] {_cut(texts.get(message_id, ''), _SHOWN)}"))
    if len(miss.lost) > _LOST:
        console.print(Text(f"  and {len(miss.lost) - _LOST} more", style="dim"))


def _cut(text: str, most: int) -> str:
    said = to_one_line(text)
    return said if len(said) <= most else f"{said[:most]}… ({len(said):,} characters)"
