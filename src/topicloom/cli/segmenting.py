"""`topicloom eval segmentation`: boundaries against dialogues whose segments are known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from topicloom.boundary.model import BoundaryModel
from topicloom.boundary.policy import Granularity
from topicloom.boundary.weights import PACKAGED
from topicloom.cli.console import dim, open_console
from topicloom.cli.progress import counting
from topicloom.cli.trained import in_sample
from topicloom.cli.writing import write_lines
from topicloom.evaluation.segmentation import (
    Mode,
    SegmentationSummary,
    evaluate_segmentation,
    load_dialogues,
)
from topicloom.index.encoders import default_embedder


@dataclass(frozen=True, slots=True)
class SegmentationOptions:
    """What the command was given."""

    file: Path
    mode: Mode
    granularity: Granularity
    weights: Path | None
    out: Path | None


def run_segmentation(
    options: SegmentationOptions, console: Console | None = None
) -> SegmentationSummary:
    """Find the boundaries of every dialogue of a file.

    Raises:
        NotAConversationError: If the file holds something else.
        ConfigurationError: If the weights or a library are missing.
        StorageUnavailableError: If the results cannot be written.
    """
    console = console or open_console()
    dialogues = load_dialogues(options.file)
    embedder = default_embedder()
    model = BoundaryModel.load(options.weights, embedder=embedder.fingerprint)
    with counting(console, "dialogues", len(dialogues)) as progress:
        rows, summary = evaluate_segmentation(
            dialogues,
            model,
            embedder,
            mode=options.mode,
            granularity=options.granularity,
            progress=progress,
        )
    if options.out is not None:
        write_lines(options.out, (json.dumps(row.as_json()) for row in rows))
    console.print(_table(options, summary))
    for remark in in_sample(options.file, options.weights or PACKAGED):
        dim(console, remark)
    return summary


def _table(options: SegmentationOptions, summary: SegmentationSummary) -> Table:
    table = Table(title=f"Boundaries, {options.mode}: {options.file.name}")
    for column in ("dialogues", "", "Score", "Pk", "WindowDiff", "F1", "found / true"):
        table.add_column(column, justify="right" if column else "left")
    rows = {"all": summary.all, "dependent": summary.dependent}
    for name, m in rows.items():
        if m is not None:
            figures = (f"{x:.3f}" for x in (m.score, m.pk, m.window_diff, m.f1))
            table.add_row(str(m.dialogues), name, *figures, f"{m.ratio:.2f}")
    if summary.false_splits is not None:
        table.caption = f"false splits a dependent dialogue: {summary.false_splits:.2f}"
    return table
