"""`topicloom eval misses`: the evidence that a strategy did not find, question by question."""

from __future__ import annotations

from collections.abc import Sequence
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
        raise ConfigurationError(f"{out} holds no results of {strategy!r}")
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
        print_json(map(_to_row, found[:limit]))
        return
    console.print(f"{len(found)} of {len(asked)} questions with something missed")
    read = cache(partial(_read, results.run().get("folder")))
    for miss in found[:limit]:
        _show(miss, read(miss.cell.source).get(miss.cell.conversation), console)


def _read(folder: str | None, source: str) -> dict[str, Conversation]:
    """The conversations of a source by id; none if it cannot be read any more."""
    try:
        return {c.id: c for c in load_source(source, Path(folder) if folder else None)}
    except InputError:
        return {}


def _to_row(miss: Miss) -> dict[str, Any]:
    cell, row = miss.cell, miss.row
    place = {"source": name_of(cell.source), "conversation": cell.conversation}
    asked = {"budget": cell.budget, "question": row.question, "category": row.category}
    return place | asked | {"found": row.found, "missed": miss.lost}


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
