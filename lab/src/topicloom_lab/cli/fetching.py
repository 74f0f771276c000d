"""Doing `topicloom eval fetch` and `topicloom eval convert`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from rich.text import Text

from topicloom.cli.console import count_of, open_console, print_dim
from topicloom.errors import ConfigurationError, InputError, suggest
from topicloom.recordings.conversations import read_recording
from topicloom_lab.cli.output import write_lines
from topicloom_lab.data_sets import DATA_SETS, DataSet, Row, convert_file

_SECONDS = 60.0
"""Time that a server may take for the next piece of a file."""


def list_data_sets() -> None:
    """Print the data sets with their licences and homes."""
    console = open_console()
    for name, known in DATA_SETS.items():
        how = f"topicloom eval fetch {name}" if known.files else "not converted"
        head = Text.assemble((f"{name:9}", "bold"), known.what, (f" · {known.licence}", "yellow"))
        console.print(head, Text(f"         {known.home} · {how}", style="dim"), sep="\n")


def run_fetch(name: str, out: Path, first: int | None) -> None:
    """Download a data set and write it in our form; raises `InputError` if that cannot be done."""
    known = _find(name)
    if not known.files:
        raise InputError(f"{name} is not fetched: take it from {known.home} ({known.licence})")
    texts = ((Path(address).stem, _download(address)) for address in known.files)
    _write(name, texts, out, first)


def run_convert(name: str, files: Sequence[Path], out: Path, first: int | None) -> None:
    """Write files of a data set in our form; raises `NotAConversationError` if they are not."""
    _find(name)
    _write(name, ((path.stem, read_recording(path)) for path in files), out, first)


def _find(name: str) -> DataSet:
    if name not in DATA_SETS:
        known = ", ".join(DATA_SETS)
        raise ConfigurationError(f"no data set {name!r}{suggest(name, DATA_SETS)}; there: {known}")
    return DATA_SETS[name]


def _download(address: str) -> str:
    try:
        with urlopen(address, timeout=_SECONDS) as answer:
            return bytes(answer.read()).decode("utf-8")
    except (URLError, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{address} cannot be fetched: {error}. Download it otherwise, and"
            " `topicloom eval convert` does the rest"
        ) from error


def _write(name: str, texts: Iterable[tuple[str, str]], out: Path, first: int | None) -> None:
    def convert() -> Iterator[Row]:
        for stem, text in texts:
            yield from convert_file(name, text, stem)

    rows = list(islice(convert(), first))
    write_lines(out, (json.dumps(row, ensure_ascii=False) for row in rows))
    known, asked = DATA_SETS[name], sum(len(row["questions"]) for row in rows)
    print_dim(
        open_console(),
        f"{out}: {count_of(len(rows), 'conversation')}, {count_of(asked, 'question')}."
        f" {known.home}; {known.licence}",
    )
