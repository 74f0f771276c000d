"""Commands that check what is stored, and repair it."""

from typing import Annotated

import typer

from topicloom_app.cli.options import AsJson, Name


def doctor(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Model to try as the reader, such as openai:qwen3. It reads twenty short topics,"
            " which may take minutes; then you see whether to let it decide, or advise.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check versions, folder, encoder and model. Exits with 1 if one of them does not work."""
    from topicloom_app.cli.doctor import run_doctor

    run_doctor(context.obj, model, as_json=json)


def check(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the session. If not given, all sessions."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check what is stored. Exits with 1 if something is wrong."""
    from topicloom_app.cli.doctor import run_check

    run_check(context.obj, name, as_json=json)


def repair(context: typer.Context, name: Name, json: AsJson = False) -> None:
    """Repair missing or damaged data from the transcript. Exits with 1 if any is left damaged."""
    from topicloom_app.cli.doctor import run_repair

    run_repair(context.obj, name, as_json=json)
