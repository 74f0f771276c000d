"""`topicloom eval`: measuring on recorded conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from topicloom.cli import eval_generate, eval_run

eval_app = typer.Typer(help="Measure on recorded conversations.", no_args_is_help=True)


@eval_app.callback()
def options() -> None:
    """Measure on recorded conversations."""


@eval_app.command()
def memory(
    file: Annotated[
        Path, typer.Argument(help="Conversations with questions, one JSON a line; .xz is fine.")
    ],
    budget: Annotated[int, typer.Option(min=1, help="Tokens of recalled context.")] = 4_000,
    out: Annotated[
        Path | None, typer.Option(help="Results, one JSON a question; goes on where it stopped.")
    ] = None,
    recent: Annotated[
        int, typer.Option(min=0, help="Newest messages that stay in view anyway.")
    ] = 0,
    window: Annotated[
        int, typer.Option(min=1_000, help="Main window in tokens during the replay.")
    ] = 8_000,
    topic_window: Annotated[
        int, typer.Option(min=1_000, help="Window of a topic in tokens.")
    ] = 64_000,
    reviews: Annotated[
        Literal["none", "daily"],
        typer.Option(help="Review at every midnight that the recorded dates pass."),
    ] = "none",
) -> None:
    """Replay conversations, ask their questions, and see whether the evidence is in the context.

    A token here is a CJK character or four other characters, of `speaker: text`. Each question
    starts from the state after the whole conversation (or before the message that asks it) and
    does not become part of it. The clock is that of the recording. At the end every message must
    be in exactly one place, word for word.
    """
    from topicloom.cli.evaluating import MemoryOptions, run_memory

    run_memory(MemoryOptions(file, out, budget, recent, window, topic_window, reviews))


@eval_app.command()
def segmentation(
    file: Annotated[Path, typer.Argument(help="Dialogues with segments, one JSON a line.")],
    mode: Annotated[
        Literal["online", "retrospective"],
        typer.Option(help="Decide as messages come, or knowing the whole dialogue."),
    ] = "online",
    granularity: Annotated[
        Literal["auto", "fine", "coarse"], typer.Option(help="How fine topics are.")
    ] = "auto",
    weights: Annotated[
        Path | None, typer.Option(help="Weights of `topicloom train boundary`; else those shipped.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Results, one JSON a dialogue.")] = None,
) -> None:
    """Find where topics begin, and compare with dialogues whose segments are known."""
    from topicloom.cli.segmenting import SegmentationOptions, run_segmentation

    run_segmentation(SegmentationOptions(file, mode, granularity, weights, out))


@eval_app.command()
def threads(
    file: Annotated[Path, typer.Argument(help="Conversations with threads, one JSON a line.")],
    by: Annotated[
        Literal["message", "block"],
        typer.Option(help="Judge messages as they come, or blocks when they are over."),
    ] = "message",
    weights: Annotated[
        Path | None,
        typer.Option(help="Weights of `topicloom train rejoining`; else those shipped."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Results, one JSON a conversation.")] = None,
) -> None:
    """Tell to which topic each message belongs, as it comes, and compare with the known ones."""
    from topicloom.cli.untangling import ThreadOptions, run_threads

    run_threads(ThreadOptions(file, by, weights, out))


eval_run.register(eval_app)
eval_generate.register(eval_app)
