"""Data to measure on: fetched, converted, or made up."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from topicloom_lab.cli.commands.options import Threads, number


def fetch(
    name: Annotated[
        str | None, Argument(help="A public data set; all are listed if not given.")
    ] = None,
    out: Annotated[Path | None, Option(help="File to write; NAME.jsonl if not given.")] = None,
    first: Annotated[int | None, number("Only the first conversations.")] = None,
    threads: Threads = None,
) -> None:
    """Download a public data set, and write it as `eval run` and the others read it.

    Says where it comes from and under which licence it is.
    """
    from topicloom_lab.cli.data_files import list_data_sets, run_fetch

    if name is None:
        list_data_sets()
    else:
        run_fetch(name, out or Path(f"{name}.jsonl"), first, threads)


def convert(
    name: Annotated[str, Argument(help="The data set that the files are of.")],
    files: Annotated[
        list[Path],
        Argument(help="Its files as they are published; of lifebench, a folder for each person."),
    ],
    out: Annotated[Path, Option(help="File to write.")],
    first: Annotated[int | None, number("Only the first conversations.")] = None,
    threads: Threads = None,
) -> None:
    """Write files of a public data set as `eval run` and the others read it."""
    from topicloom_lab.cli.data_files import run_convert

    run_convert(name, files, out, first, threads)


def generate(
    spec: Annotated[
        str, Argument(help="Generator and options: sniah:needle=uuid,tokens=1000000,seed=1.")
    ],
    out: Annotated[Path, Option(help="Where the conversations go, one JSON a line.")],
) -> None:
    """Make conversations up, with questions and evidence. The same options make the same."""
    from topicloom_lab.cli.data_files import run_generate

    run_generate(spec, out)
