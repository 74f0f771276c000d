"""Data to measure on: fetched, converted, or made up."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from topicloom_lab.cli.commands.options import Threads, number


def fetch(
    name: Annotated[
        str | None,
        Argument(
            metavar="NAME",
            help="The name of a public data set. Without it, the command lists all of them.",
        ),
    ] = None,
    out: Annotated[Path | None, Option(help="The file to write. Default: NAME.jsonl.")] = None,
    first: Annotated[int | None, number("Take only the first N conversations.")] = None,
    threads: Threads = None,
) -> None:
    """Download a public data set, and write it in the form that `eval run` and the others read.

    The command also prints where the data set comes from, and its licence.
    """
    from topicloom_lab.cli.data_files import list_data_sets, run_fetch

    if name is None:
        list_data_sets()
    else:
        run_fetch(name, out or Path(f"{name}.jsonl"), first, threads)


def convert(
    name: Annotated[str, Argument(metavar="NAME", help="The data set that the files belong to.")],
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE",
            help="The files as published; folders for lifebench, locomo-plus and proactive.",
        ),
    ],
    out: Annotated[Path, Option(help="The file to write.")],
    first: Annotated[int | None, number("Take only the first N conversations.")] = None,
    threads: Threads = None,
) -> None:
    """Rewrite files of a public data set in the form that `eval run` and the others read."""
    from topicloom_lab.cli.data_files import run_convert

    run_convert(name, files, out, first, threads)


def generate(
    spec: Annotated[
        str,
        Argument(
            metavar="SPEC",
            help="The generator with its options, such as sniah:needle=uuid,tokens=1000000,seed=1.",
        ),
    ],
    out: Annotated[Path, Option(help="The file for the conversations, one JSON object a line.")],
) -> None:
    """Generate conversations with questions and evidence. The same options give the same
    conversations."""
    from topicloom_lab.cli.data_files import run_generate

    run_generate(spec, out)
