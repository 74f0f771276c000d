"""Progress bars, and files of results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from topicloom import StorageUnavailableError
from topicloom.lab import fresh_name
from topicloom_app.cli.console import open_console, print_json


def open_figures(*, as_json: bool) -> Console:
    """The console that tables of figures are printed on; as JSON, each row of them is a line."""
    return _RowsConsole(quiet=True) if as_json else open_console()


class _RowsConsole(Console):
    """Prints the rows of tables as JSON, and nothing else."""

    def print(self, *objects: Any, **options: Any) -> None:
        for table in objects:
            if isinstance(table, Table):
                print_json(read_rows(table))


def read_rows(table: Table) -> Iterator[dict[str, Any]]:
    """The rows of a table by its heads; figures as numbers, None where there is none."""
    heads = [str(column.header) or "of" for column in table.columns]
    for place, head in enumerate(heads):
        if head in heads[:place]:
            heads[place] = f"{heads[place - 1]}: {head}"
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        yield {"table": str(table.title)} | dict(zip(heads, map(_read_cell, cells), strict=True))


def _read_cell(cell: object) -> float | str | None:
    text = str(cell)
    if text == "-":
        return None
    number = text.replace(",", "")
    if re.fullmatch(r"-?\d+", number):
        return int(number)
    return float(number) if re.fullmatch(r"[+-]?\d*\.\d+", number) else text


def open_bars(console: Console, *, transient: bool = False) -> Progress:
    """A display of progress bars with counts and times; a transient one goes when it is closed."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=transient)


@contextmanager
def counting(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar, and the function that tells it how many are done."""
    with open_bars(console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


def make_table(
    title: str,
    heads: Sequence[str],
    lines: Iterable[Sequence[str]],
    caption: str = "",
    *,
    named: int = 0,
) -> Table:
    """A table of figures, to the right, about what is named in one column, to the left."""
    table = Table(title=title, caption=caption or None)
    for place, head in enumerate(heads):
        # A narrow terminal breaks a word; it hides none.
        table.add_column(head, justify="left" if place == named else "right", overflow="fold")
    for line in lines:
        table.add_row(*line)
    return table


def show_mean(rows: Sequence[Mapping[str, Any]], key: str) -> str:
    """The mean of a figure, as a cell of a table; a dash if there is none."""
    return f"{mean(row[key] for row in rows):,.0f}" if rows else "-"


def write_rows(out: Path, rows: Iterable[Mapping[str, Any]], *, add: bool = False) -> None:
    """Write a JSON object a line; see `write_lines`."""
    write_lines(out, (json.dumps(row, ensure_ascii=False) for row in rows), add=add)


def write_lines(out: Path, lines: Iterable[str], *, add: bool = False) -> None:
    """Write lines to a file, after what stands there if they are added.

    The file is there with all of them or, if they are not added, as it was.

    Raises:
        StorageUnavailableError: If it cannot be written.
    """
    fresh = out if add or (out.exists() and not out.is_file()) else fresh_name(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("a" if add else "w", encoding="utf-8") as file:
            for line in lines:
                file.write(f"{line}\n")
        if fresh != out:
            fresh.replace(out)
    except OSError as error:
        raise StorageUnavailableError(
            "results cannot be written to {out}: {error}", out=out, error=error
        ) from error
    finally:
        if fresh != out:
            with suppress(OSError):
                fresh.unlink()  # it is there only if something failed


def in_sample(file: Path, weights: Path) -> Iterator[str]:
    """A remark if the weights have seen a file: figures of it are too good.

    Args:
        file: The measurements.
        weights: Weights with a description beside them that lists `data`, hashes by file name.
    """
    described = json.loads(weights.with_suffix(".json").read_text("utf-8"))
    if sha256(file.read_bytes()).hexdigest() in described.get("data", {}).values():
        beside = weights.with_suffix(".json").name
        yield (
            "In sample: the weights were trained on this file too. Figures out of sample stand in "
            f"{beside}, beside the weights; `topicloom train` makes them."
        )
