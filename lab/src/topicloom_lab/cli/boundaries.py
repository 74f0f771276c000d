"""`topicloom eval segmentation`, `eval threads` and `train boundary`: where topics begin."""

from __future__ import annotations

from pathlib import Path

from topicloom import StorageUnavailableError, default_embedder
from topicloom.lab import PACKAGED, Granularity
from topicloom_app.cli.console import open_console, print_dim
from topicloom_lab.boundary_models import load_trained
from topicloom_lab.cli.output import counting, in_sample, make_table, open_figures, write_rows
from topicloom_lab.gold_splitter import SplitterKind
from topicloom_lab.segmentation import Mode, evaluate_segmentation, load_dialogues
from topicloom_lab.thread_scores import summarize_scores
from topicloom_lab.threads import ThreadRow, evaluate_threads, load_threads
from topicloom_lab.training.boundary import train_boundary


def run_segmentation(
    file: Path,
    mode: Mode,
    granularity: Granularity,
    weights: Path | None,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Find the boundaries of every dialogue of a file, and print how well.

    Raises:
        NotAConversationError: If the file holds something else.
        ConfigurationError: If the weights or a library are missing.
        StorageUnavailableError: If the results cannot be written.
    """
    console, dialogues = open_figures(as_json=as_json), load_dialogues(file)
    embedder = default_embedder()
    model = load_trained(weights or PACKAGED, embedder.fingerprint)
    with counting(console, "dialogues", len(dialogues)) as progress:
        rows, found = evaluate_segmentation(
            dialogues, model, embedder, mode=mode, granularity=granularity, progress=progress
        )
    if out is not None:
        write_rows(out, rows)
    table = make_table(
        f"Boundaries, {mode}: {file.name}",
        ("dialogues", "", "Score", "Pk", "WindowDiff", "F1", "found / true"),
        (
            (str(m.dialogues), name, *map("{:.3f}".format, figures), f"{m.ratio:.2f}")
            for name, m in (("all", found.all), ("dependent", found.dependent))
            if m is not None
            for figures in [(m.score, m.pk, m.window_diff, m.f1)]
        ),
        named=1,
    )
    if found.false_splits is not None:
        table.caption = f"false splits a dependent dialogue: {found.false_splits:.2f}"
    console.print(table)
    for remark in in_sample(file, weights or PACKAGED):
        print_dim(console, remark)


def run_threads(
    file: Path, window: int, splitter: SplitterKind, out: Path | None, *, as_json: bool
) -> None:
    """Feed every conversation of a file to a session, and compare its topics with the known ones.

    Raises:
        NotAConversationError: If the file holds something else.
        StorageUnavailableError: If the results cannot be written.
    """
    console, conversations = open_figures(as_json=as_json), list(load_threads(file))
    rows = list[ThreadRow]()
    with counting(console, "conversations", len(conversations)) as progress:
        for row in evaluate_threads(conversations, window=window, splitter=splitter):
            rows.append(row)
            progress(len(rows))
    if out is not None:
        write_rows(out, (row.as_json() for row in rows))
    found = {
        "as they come": summarize_scores(row.as_they_come for row in rows),
        "after they are moved": summarize_scores(row.moved for row in rows),
    }
    names = ("ari", "one_to_one", "vi", "exact")
    table = make_table(
        f"Topics: {file.name}",
        ("conversations", "", "ARI", "1-1", "1-VI", "exact F1"),
        (
            (f"{s['conversations']:.0f}", when, *(f"{100 * s[name]:.1f}" for name in names))
            for when, s in found.items()
        ),
        named=1,
    )
    console.print(table)


def run_training(data: Path, out: Path, seed: int) -> None:
    """Train the boundary model, and show where that is on one line; see `train_boundary`.

    Raises:
        StorageUnavailableError: If the weights cannot be written.
    """
    console = open_console()
    try:
        # Better before the training than after it.
        out.parent.mkdir(parents=True, exist_ok=True)
        with console.status("reading") as status:
            train_boundary(data / "segmentation", out, seed=seed, report=status.update)
    except OSError as error:
        raise StorageUnavailableError(
            "weights cannot be written to {out}: {error}", out=out, error=error
        ) from error
    console.print(f"wrote {out} and {out.with_suffix('.json')}")
