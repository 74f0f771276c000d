"""`topicloom eval run`, `report` and `misses`: the commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path, typer.Argument(metavar="OUT", help="A folder of results.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `topicloom eval`."""
    app.command()(run)
    app.command()(report)
    app.command()(misses)


def run(
    config: Annotated[
        Path | None,
        typer.Argument(help="What to compare, as TOML; the packaged example if not given."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where results go; else where the file says.")
    ] = None,
    again: Annotated[
        list[str] | None, typer.Option(help="Run this strategy although it is finished.")
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Only print the packaged example.")
    ] = False,
) -> None:
    """Compare context strategies on recorded conversations, and write a report.

    A cell is one conversation under one strategy and budget. What is finished is not run again.
    """
    from topicloom.cli.comparing import RunOptions, print_example, run_config

    if example:
        print_example()
        return
    run_config(RunOptions(config, out, tuple(again or ())))


def report(out: Out) -> None:
    """Write report.md and the figures of a folder of results once more."""
    from topicloom.cli.comparing import write_again

    write_again(out)


def misses(
    out: Out,
    strategy: Annotated[str, typer.Option(help="Whose misses.")] = "topicloom",
    against: Annotated[str | None, typer.Option(help="Only what this strategy found.")] = None,
    source: Annotated[str | None, typer.Option(help="Only this file; a part of its name.")] = None,
    budget: Annotated[int | None, typer.Option(help="Only this budget.")] = None,
    category: Annotated[str | None, typer.Option(help="Only this category.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Questions shown at most.")] = 20,
) -> None:
    """Show questions whose evidence was missed, with the messages that were."""
    from topicloom.cli.missing import MissOptions, show_misses

    show_misses(MissOptions(out, strategy, against, source, budget, category, limit))
