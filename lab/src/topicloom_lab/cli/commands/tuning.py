"""What a turn log says about the thresholds."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option

from topicloom_lab.cli.commands.options import AsJson


def tune(
    context: Context,
    log: Annotated[
        str,
        Argument(
            metavar="LOG",
            help="A session, or a file with what `topicloom receipt NAME --json` printed.",
        ),
    ],
    out: Annotated[
        Path | None, Option(help="The folder for the pictures. Default: tune-NAME.")
    ] = None,
    plots: Annotated[bool, Option(help="Draw pictures, or only print.")] = True,
    svg: Annotated[bool, Option("--svg", help="Also draw the pictures as SVG.")] = False,
    json: AsJson = False,
) -> None:
    """Show what a turn log says about the thresholds, and what other thresholds would have done."""
    from topicloom_app.cli.console import CliOptions
    from topicloom_lab.cli.tuning import run_tune

    given = context.find_object(CliOptions) or CliOptions()
    kinds = ("png", "svg") if svg else ("png",)
    run_tune(given, log, out, kinds if plots else (), as_json=json)
