"""Where topics begin, and what belongs to them."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from topicloom_lab.cli.commands.options import AsJson, Splitter, Window


def segmentation(
    file: Annotated[
        Path,
        Argument(metavar="FILE", help="A file of dialogues with segments, one JSON object a line."),
    ],
    mode: Annotated[
        Literal["online", "retrospective"],
        Option(help="Decide message by message, or with the whole dialogue known."),
    ] = "online",
    granularity: Annotated[
        Literal["auto", "fine", "coarse"], Option(help="How fine the topics are.")
    ] = "auto",
    weights: Annotated[
        Path | None,
        Option(help="Weights that `topicloom train boundary` wrote. Default: the packaged ones."),
    ] = None,
    out: Annotated[
        Path | None, Option(help="The file for the results, one JSON object for each dialogue.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Find where topics begin, and compare with dialogues whose segments are known."""
    from topicloom_lab.cli.boundaries import run_segmentation

    run_segmentation(file, mode, granularity, weights, out, as_json=json)


def threads(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE", help="A file of conversations with threads, one JSON object a line."
        ),
    ],
    window: Window = 8_000,
    splitter: Splitter = "embedded",
    out: Annotated[
        Path | None, Option(help="The file for the results, one JSON object for each conversation.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Feed interleaved talk to a session, and compare its topics with the known ones.

    The topics are compared twice: as the messages come, when the graph only knows where a topic
    begins, and after the splits moved the messages. Small windows split often. Messages that are
    still unsplit at the end are split then. Messages without a thread are not judged. A message
    that the session has in no topic counts as a topic of its own.
    """
    from topicloom_lab.cli.boundaries import run_threads

    run_threads(file, window, splitter, out, as_json=json)


def boundary(
    data: Annotated[Path, Argument(metavar="FOLDER", help="The folder that `segmentation` is in.")],
    out: Annotated[Path, Option(help="The file to write the weights to.")] = Path("boundary.npz"),
    seed: Annotated[
        int,
        Option(
            help="The seed of all that is drawn at random. The same seed gives the same weights."
        ),
    ] = 0,
) -> None:
    """Learn where topics begin, from `segmentation/*.jsonl`.

    The command writes the weights, and a file beside them that describes them and has their figures
    out of sample.
    """
    from topicloom_lab.cli.boundaries import run_training

    run_training(data, out, seed)
