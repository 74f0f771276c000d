"""Strategies compared: run, report, and what was missed."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from topicloom_lab.cli.commands.options import AsJson, Out, number


def run(
    config: Annotated[
        Path | None,
        Argument(help="What to compare, as TOML; the packaged example if not given."),
    ] = None,
    out: Annotated[Path | None, Option(help="Where results go, if not as it says.")] = None,
    again: Annotated[
        list[str] | None, Option(help="Run this strategy although it is finished.")
    ] = None,
    example: Annotated[bool, Option("--example", help="Print the packaged example.")] = False,
    json: AsJson = False,
) -> None:
    """Compare context strategies on recorded conversations, and write a report.

    A cell is one conversation under one strategy and budget. What is finished is not run again.
    """
    from topicloom_lab.cli.comparing import print_example, run_config

    if example:
        print_example()
        return
    run_config(config, out, again or (), as_json=json)


def report(out: Out, json: AsJson = False) -> None:
    """Write report.md and the figures of a folder of results once more."""
    from topicloom_lab.cli.comparing import write_again

    write_again(out, as_json=json)


def misses(
    out: Out,
    strategy: Annotated[str, Option(help="Whose misses.")] = "topicloom",
    against: Annotated[str | None, Option(help="Only what this strategy found.")] = None,
    source: Annotated[str | None, Option(help="Only this file; a part of its name.")] = None,
    budget: Annotated[int | None, Option(help="Only this budget.")] = None,
    category: Annotated[str | None, Option(help="Only this category.")] = None,
    limit: Annotated[int, number("Questions shown at most.")] = 20,
    json: AsJson = False,
) -> None:
    """Show questions whose evidence was missed, with the messages that were."""
    from topicloom_lab.cli.comparing import show_misses

    show_misses(out, strategy, against, source, budget, category, limit, as_json=json)
