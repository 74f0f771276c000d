"""What a turn log says about the thresholds."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option

from topicloom_lab.cli.commands.options import AsJson


def tune(
    context: Context,
    log: Annotated[str, Argument(metavar="LOG", help="A session, or what receipt --json printed.")],
    out: Annotated[
        Path | None, Option(help="Folder for the pictures; tune-NAME if not given.")
    ] = None,
    plots: Annotated[bool, Option(help="Whether to draw pictures.")] = True,
    svg: Annotated[bool, Option("--svg", help="Draw them as SVG too.")] = False,
    json: AsJson = False,
) -> None:
    """Show what a turn log says about the thresholds, and what other thresholds would have done."""
    from topicloom.cli.console import CliOptions
    from topicloom_lab.cli.tuning import run_tune

    given = context.find_object(CliOptions) or CliOptions()
    kinds = ("png", "svg") if svg else ("png",)
    run_tune(given, log, out, kinds if plots else (), as_json=json)
