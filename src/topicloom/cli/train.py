"""`topicloom train`: the weights of the boundary adsorber, from a folder of marked data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

train_app = typer.Typer(
    help="Train the small models that ship, from conversations with marked topics.",
    no_args_is_help=True,
)

Data = Annotated[Path, typer.Argument(help="Folder with `segmentation` and `threads` in it.")]
Seed = Annotated[int, typer.Option(help="Of all that is drawn; the same seed, the same weights.")]


@train_app.callback()
def options() -> None:
    """Train the small models that ship, from conversations with marked topics."""


@train_app.command()
def boundary(
    data: Data,
    out: Annotated[Path, typer.Option(help="Weights to write.")] = Path("boundary.npz"),
    seed: Seed = 0,
) -> None:
    """Learn where topics begin, from `segmentation/*.jsonl`.

    Writes weights, and beside them what they are and their figures out of sample.
    """
    from topicloom.cli.training import run_boundary

    run_boundary(data, out, seed)


@train_app.command()
def rejoining(
    data: Data,
    out: Annotated[Path, typer.Option(help="Weights to write.")] = Path("rejoin.npz"),
    seed: Seed = 0,
) -> None:
    """Learn which topic a message goes back to, from `threads/*.jsonl`.

    Writes weights, and beside them what they are and their figures out of sample.
    """
    from topicloom.cli.training import run_rejoining

    run_rejoining(data, out, seed)
