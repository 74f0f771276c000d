"""Running a training at the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from topicloom.cli.console import open_console
from topicloom.errors import StorageUnavailableError
from topicloom.training.boundary import train_boundary
from topicloom.training.rejoin import train_rejoin


def run_boundary(data: Path, out: Path, seed: int) -> None:
    """Train the boundary model; see `train_boundary`."""
    with _reporting(out) as report:
        train_boundary(data / "segmentation", out, seed=seed, report=report)


def run_rejoining(data: Path, out: Path, seed: int) -> None:
    """Train the rejoiner; see `train_rejoin`."""
    with _reporting(out) as report:
        train_rejoin(data, out, seed=seed, report=report)


@contextmanager
def _reporting(out: Path) -> Iterator[Callable[[str], None]]:
    """Where the training is, on one line; and at the end what it wrote.

    Raises:
        StorageUnavailableError: If the weights cannot be written.
    """
    console = open_console()
    try:
        # Better before the training than after it.
        out.parent.mkdir(parents=True, exist_ok=True)
        with console.status("reading") as status:
            yield status.update
    except OSError as error:
        raise StorageUnavailableError(f"weights cannot be written to {out}: {error}") from error
    console.print(f"wrote {out} and {out.with_suffix('.json')}")
