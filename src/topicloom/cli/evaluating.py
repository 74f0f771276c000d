"""`topicloom eval memory`: evidence recall of a recorded conversation's questions."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from topicloom.cli.writing import write_lines
from topicloom.evaluation.conversations import Conversation, load_conversations
from topicloom.evaluation.memory import MemoryEvaluation, MemoryRow


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """What the command was given."""

    file: Path
    out: Path | None
    budget: int
    recent: int
    window: int


def run_memory(options: MemoryOptions, console: Console | None = None) -> list[MemoryRow]:
    """Replay every conversation of the file and ask its questions.

    Rows are written conversation by conversation; what stands in the results file already is
    not run again.

    Raises:
        NotAConversationError: If the file holds something else.
        StorageUnavailableError: If the results cannot be written.
    """
    console = console or Console()
    conversations = list(load_conversations(options.file))
    rows = _done(options)
    finished = {row.conversation for row in rows}
    for conversation in conversations:
        if conversation.id in finished:
            console.print(f"[dim]{conversation.id}: in {options.out} already[/dim]")
            continue
        found = _one(conversation, options, console)
        rows += found
        if options.out is not None:
            lines = (json.dumps(row.as_json(), ensure_ascii=False) for row in found)
            write_lines(options.out, lines, add=True)
    console.print(summary(rows, options))
    return rows


def _one(conversation: Conversation, options: MemoryOptions, console: Console) -> list[MemoryRow]:
    evaluation = MemoryEvaluation(
        budget=options.budget, recent=options.recent, window=options.window
    )
    rows: list[MemoryRow] = []
    spoken = sum(bool(m.text.strip()) for m in conversation.messages)
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        ) as progress,
    ):
        fed = progress.add_task(f"{conversation.id}: messages", total=spoken)
        asked = progress.add_task("questions", total=len(conversation.questions))
        for event in evaluation.run(conversation, Path(folder)):
            if isinstance(event, MemoryRow):
                rows.append(event)
                progress.advance(asked)
            else:
                progress.advance(fed, event)
    return rows


def summary(rows: Sequence[MemoryRow], options: MemoryOptions) -> Table:
    """Recall by category; questions without evidence are left out."""
    table = Table(title=f"Evidence recall at {options.budget:,} tokens: {options.file.name}")
    for column in ("category", "questions", "recall", "all of it", "tokens"):
        table.add_column(column, justify="left" if column == "category" else "right")
    scored = [row for row in rows if row.evidence]
    groups = {
        c: [r for r in scored if r.category == c] for c in sorted({r.category for r in scored})
    }
    for name, group in [*groups.items(), ("all", scored)]:
        if group:
            table.add_row(
                name,
                str(len(group)),
                f"{mean(r.recall for r in group):.3f}",
                f"{mean(r.recall == 1 for r in group):.3f}",
                f"{mean(r.tokens for r in group):.0f}",
                end_section=name != "all" and name == list(groups)[-1],
            )
    return table


def _done(options: MemoryOptions) -> list[MemoryRow]:
    """Rows of the results file that belong to this run."""
    if options.out is None or not options.out.exists():
        return []
    rows = [json.loads(line) for line in options.out.read_text("utf-8").splitlines() if line]
    evidence = {
        (c.id, q.id): q.evidence for c in load_conversations(options.file) for q in c.questions
    }
    return [
        MemoryRow(
            conversation=row["conversation"],
            question=row["question"],
            category=row["category"],
            budget=row["budget"],
            message_ids=tuple(row["message_ids"]),
            tokens=row["tokens"],
            calls=row["calls"],
            evidence=evidence[row["conversation"], row["question"]],
        )
        for row in rows
        if row["budget"] == options.budget and (row["conversation"], row["question"]) in evidence
    ]
