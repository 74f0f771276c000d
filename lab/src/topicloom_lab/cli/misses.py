"""`topicloom eval misses`: the evidence that a strategy did not find, question by question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from topicloom.cli.console import open_console, print_json, to_one_line
from topicloom.errors import ConfigurationError, InputError
from topicloom.recordings.conversations import Conversation
from topicloom_lab.comparison.config import load_source, name_of
from topicloom_lab.comparison.measures import QuestionResult
from topicloom_lab.comparison.results import Cell, Results
from topicloom_lab.strategies.base import line_of

_SHOWN = 110
"""Characters shown of a message."""
_ASKED = 300
"""Characters shown of a question."""
_LOST = 8
"""Messages shown of a question."""


@dataclass(frozen=True, slots=True)
class MissOptions:
    """The options of the command."""

    out: Path
    strategy: str
    against: str | None
    source: str | None
    budget: int | None
    category: str | None
    limit: int


@dataclass(frozen=True, slots=True)
class Miss:
    """One question whose evidence was not all found."""

    cell: Cell
    row: QuestionResult
    lost: tuple[str, ...]
    """Ids of messages that were not found; with another strategy, that this one did find."""


def show_misses(options: MissOptions, *, as_json: bool = False) -> None:
    """Print misses, those with most lost evidence first.

    Raises:
        ConfigurationError: If the folder holds no such results.
    """
    console = open_console()
    results = Results(options.out)
    cells = list(results.cells().values())
    if not any(cell.strategy == options.strategy for cell in cells):
        raise ConfigurationError(f"{options.out} holds no results of {options.strategy!r}")
    found = sorted(_misses(cells, options), key=lambda m: -len(m.lost) / len(m.row.evidence))
    if as_json:
        print_json(map(_to_row, found[: options.limit]))
        return
    asked = sum(len(c.asked) for c in cells if _wanted(c, options))
    console.print(f"{len(found)} of {asked} questions with something missed")
    folder = results.run().get("folder")
    read = cache(partial(_read, Path(folder) if folder else None))
    for miss in found[: options.limit]:
        _show(miss, read(miss.cell.source).get(miss.cell.conversation), console)


def _to_row(miss: Miss) -> dict[str, Any]:
    cell, row = miss.cell, miss.row
    place = {"source": name_of(cell.source), "conversation": cell.conversation}
    asked = {"budget": cell.budget, "question": row.question, "category": row.category}
    return place | asked | {"found": row.found, "missed": miss.lost}


def _misses(cells: list[Cell], options: MissOptions) -> Iterator[Miss]:
    others = {
        (c.source, c.conversation, c.budget, row.question): row
        for c in cells
        if c.strategy == options.against
        for row in c.asked
    }
    for cell in (c for c in cells if _wanted(c, options)):
        for row in cell.asked:
            if options.category not in (None, row.category):
                continue
            lost = [i for i in row.evidence if i not in row.found]
            if options.against is not None:
                other = others.get((cell.source, cell.conversation, cell.budget, row.question))
                lost = [i for i in lost if other is not None and i in other.found]
            if lost:
                yield Miss(cell, row, tuple(lost))


def _wanted(cell: Cell, options: MissOptions) -> bool:
    return (
        cell.strategy == options.strategy
        and options.budget in (None, cell.budget)
        and (options.source is None or options.source in cell.source)
    )


def _show(miss: Miss, conversation: Conversation | None, console: Console) -> None:
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


def _read(folder: Path | None, source: str) -> dict[str, Conversation]:
    """The recordings of a source by id; none where it cannot be read any more."""
    try:
        return {conversation.id: conversation for conversation in load_source(source, folder)}
    except InputError:
        return {}
