"""Strategies compared: run, report, and what was missed."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from topicloom_lab.cli.commands.options import AsJson, Out, number


def run(
    config: Annotated[
        Path | None,
        Argument(
            metavar="CONFIG",
            help="A TOML file that says what to compare. Default: the packaged example.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Option(help="The folder for the results, instead of the one in the TOML file.")
    ] = None,
    again: Annotated[
        list[str] | None, Option(help="Run this strategy again, although it is finished.")
    ] = None,
    example: Annotated[bool, Option("--example", help="Print the packaged example.")] = False,
    json: AsJson = False,
) -> None:
    """Compare context strategies on recorded conversations, and write a report.

    A cell is one conversation with one strategy and one budget. Finished cells are not run again.
    """
    from topicloom_lab.cli.comparing import print_example, run_config

    if example:
        print_example()
        return
    run_config(config, out, again or (), as_json=json)


def report(out: Out, json: AsJson = False) -> None:
    """Write report.md and the figures of a folder of results again."""
    from topicloom_lab.cli.comparing import write_again

    write_again(out, as_json=json)


def misses(
    out: Out,
    strategy: Annotated[str, Option(help="Show what this strategy missed.")] = "topicloom",
    against: Annotated[str | None, Option(help="Show only what this strategy found.")] = None,
    source: Annotated[
        str | None, Option(help="Show only this file. A part of its name is enough.")
    ] = None,
    budget: Annotated[int | None, Option(help="Show only this budget.")] = None,
    category: Annotated[str | None, Option(help="Show only this category.")] = None,
    limit: Annotated[int, number("Show at most N questions.")] = 20,
    json: AsJson = False,
) -> None:
    """Show questions whose evidence was missed, with the missed messages."""
    from topicloom_lab.cli.comparing import show_misses

    show_misses(out, strategy, against, source, budget, category, limit, as_json=json)
