"""Where topics begin, and what belongs to them."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from topicloom_lab.cli.commands.options import AsJson, Splitter, Window


def segmentation(
    file: Annotated[Path, Argument(help="Dialogues with segments, one JSON a line.")],
    mode: Annotated[
        Literal["online", "retrospective"],
        Option(help="Decide as messages come, or knowing the whole dialogue."),
    ] = "online",
    granularity: Annotated[
        Literal["auto", "fine", "coarse"], Option(help="How fine topics are.")
    ] = "auto",
    weights: Annotated[
        Path | None, Option(help="Weights of `topicloom train boundary`; else those shipped.")
    ] = None,
    out: Annotated[Path | None, Option(help="Results, one JSON a dialogue.")] = None,
    json: AsJson = False,
) -> None:
    """Find where topics begin, and compare with dialogues whose segments are known."""
    from topicloom_lab.cli.boundaries import run_segmentation

    run_segmentation(file, mode, granularity, weights, out, as_json=json)


def threads(
    file: Annotated[Path, Argument(help="Conversations with threads, one JSON a line.")],
    window: Window = 8_000,
    splitter: Splitter = "embedded",
    out: Annotated[Path | None, Option(help="Results, one JSON a conversation.")] = None,
    json: AsJson = False,
) -> None:
    """Feed interleaved talk to a session, and compare its topics with the known ones.

    Twice: as messages come, when the graph only knows where a topic begins, and after the splits
    moved them. Small windows split often; what is still unsplit at the end is split then. Messages
    without a thread are not judged; one that the session has in no topic is a topic of its own.
    """
    from topicloom_lab.cli.boundaries import run_threads

    run_threads(file, window, splitter, out, as_json=json)


def boundary(
    data: Annotated[Path, Argument(help="Folder with `segmentation` in it.")],
    out: Annotated[Path, Option(help="Weights to write.")] = Path("boundary.npz"),
    seed: Annotated[int, Option(help="Of all that is drawn; the same seed, the same weights.")] = 0,
) -> None:
    """Learn where topics begin, from `segmentation/*.jsonl`.

    Writes weights, and beside them what they are and their figures out of sample.
    """
    from topicloom_lab.cli.boundaries import run_training

    run_training(data, out, seed)
