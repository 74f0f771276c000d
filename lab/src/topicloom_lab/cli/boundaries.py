"""`topicloom eval segmentation` and `threads`: topics against those that are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from topicloom.boundary.model import PACKAGED, BoundaryModel
from topicloom.boundary.policy import Granularity
from topicloom.cli.console import print_dim
from topicloom.index.encoders import default_embedder
from topicloom_lab.cli.output import counting, in_sample, write_lines
from topicloom_lab.segmentation import (
    Mode,
    SegmentationSummary,
    evaluate_segmentation,
    load_dialogues,
)
from topicloom_lab.threads import ThreadRow, evaluate_threads, load_threads, summary


@dataclass(frozen=True, slots=True)
class SegmentationOptions:
    """The options of the command."""

    file: Path
    mode: Mode
    granularity: Granularity
    weights: Path | None
    out: Path | None


def run_segmentation(options: SegmentationOptions, console: Console) -> None:
    """Find the boundaries of every dialogue of a file.

    Raises:
        NotAConversationError: If the file holds something else.
        ConfigurationError: If the weights or a library are missing.
        StorageUnavailableError: If the results cannot be written.
    """
    dialogues = load_dialogues(options.file)
    embedder = default_embedder()
    model = BoundaryModel.load(options.weights, embedder=embedder.fingerprint)
    with counting(console, "dialogues", len(dialogues)) as progress:
        rows, found = evaluate_segmentation(
            dialogues,
            model,
            embedder,
            mode=options.mode,
            granularity=options.granularity,
            progress=progress,
        )
    if options.out is not None:
        write_lines(options.out, (json.dumps(row.as_json()) for row in rows))
    console.print(_boundaries(options, found))
    for remark in in_sample(options.file, options.weights or PACKAGED):
        print_dim(console, remark)


def _boundaries(options: SegmentationOptions, found: SegmentationSummary) -> Table:
    table = Table(title=f"Boundaries, {options.mode}: {options.file.name}")
    for column in ("dialogues", "", "Score", "Pk", "WindowDiff", "F1", "found / true"):
        table.add_column(column, justify="right" if column else "left")
    rows = {"all": found.all, "dependent": found.dependent}
    for name, m in rows.items():
        if m is not None:
            figures = (f"{x:.3f}" for x in (m.score, m.pk, m.window_diff, m.f1))
            table.add_row(str(m.dialogues), name, *figures, f"{m.ratio:.2f}")
    if found.false_splits is not None:
        table.caption = f"false splits a dependent dialogue: {found.false_splits:.2f}"
    return table


def run_threads(file: Path, window: int, out: Path | None, console: Console) -> None:
    """Feed every conversation of a file to a session, and compare its topics with the known ones.

    Raises:
        NotAConversationError: If the file holds something else.
        StorageUnavailableError: If the results cannot be written.
    """
    conversations = list(load_threads(file))
    rows: list[ThreadRow] = []
    with counting(console, "conversations", len(conversations)) as progress:
        for row in evaluate_threads(conversations, window=window):
            rows.append(row)
            progress(len(rows))
    if out is not None:
        write_lines(out, (row.line() for row in rows))
    console.print(_topics(file, rows))


def _topics(file: Path, rows: Sequence[ThreadRow]) -> Table:
    table = Table(title=f"Topics: {file.name}")
    for column in ("conversations", "", "ARI", "1-1", "1-VI", "exact F1"):
        table.add_column(column, justify="right" if column else "left")
    found = {
        "as they come": summary(row.as_they_come for row in rows),
        "after they are moved": summary(row.moved for row in rows),
    }
    for name, s in found.items():
        figures = (f"{100 * s[key]:.1f}" for key in ("ari", "one_to_one", "vi", "exact"))
        table.add_row(f"{s['conversations']:.0f}", name, *figures)
    return table
