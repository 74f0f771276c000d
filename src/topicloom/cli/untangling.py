"""`topicloom eval threads`: topics of interleaved conversations against those known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from topicloom.cli.console import dim, open_console
from topicloom.cli.progress import counting
from topicloom.cli.trained import in_sample
from topicloom.cli.writing import write_lines
from topicloom.evaluation.threads import By, ThreadRow, evaluate_threads, load_threads, summary
from topicloom.index.encoders import default_embedder
from topicloom.perception.rejoin.rejoiner import Rejoiner
from topicloom.perception.rejoin.weights import PACKAGED


@dataclass(frozen=True, slots=True)
class ThreadOptions:
    """What the command was given."""

    file: Path
    by: By
    weights: Path | None
    out: Path | None


def run_threads(options: ThreadOptions, console: Console | None = None) -> dict[str, float]:
    """Tell the topics of every conversation of a file, message by message.

    Raises:
        NotAConversationError: If the file holds something else.
        ConfigurationError: If the weights or a library are missing.
        StorageUnavailableError: If the results cannot be written.
    """
    console = console or open_console()
    conversations = list(load_threads(options.file))
    embedder = default_embedder()
    rejoiner = Rejoiner.load(options.weights, embedder=embedder.fingerprint)
    rows: list[ThreadRow] = []
    with counting(console, "conversations", len(conversations)) as progress:
        for row in evaluate_threads(
            conversations, rejoiner=rejoiner, embedder=embedder, by=options.by
        ):
            rows.append(row)
            progress(len(rows))
    if options.out is not None:
        write_lines(options.out, (row.line() for row in rows))
    found = summary(rows)
    console.print(_table(options, found))
    for remark in in_sample(options.file, options.weights or PACKAGED):
        dim(console, remark)
    return found


def _table(options: ThreadOptions, found: dict[str, float]) -> Table:
    table = Table(title=f"Topics, by {options.by}: {options.file.name}")
    for column in ("conversations", "ARI", "1-1", "1-VI", "exact F1"):
        table.add_column(column, justify="right")
    figures = (f"{100 * found[name]:.1f}" for name in ("ari", "one_to_one", "vi", "exact"))
    table.add_row(f"{found['conversations']:.0f}", *figures)
    return table
