"""Running a training at the terminal."""

from __future__ import annotations

from pathlib import Path

from topicloom.cli.console import open_console
from topicloom.errors import StorageUnavailableError
from topicloom_lab.training.boundary import train_boundary


def run_boundary(data: Path, out: Path, seed: int) -> None:
    """Train the boundary model, and show where that is on one line; see `train_boundary`.

    Raises:
        StorageUnavailableError: If the weights cannot be written.
    """
    console = open_console()
    try:
        # Better before the training than after it.
        out.parent.mkdir(parents=True, exist_ok=True)
        with console.status("reading") as status:
            train_boundary(data / "segmentation", out, seed=seed, report=status.update)
    except OSError as error:
        raise StorageUnavailableError(f"weights cannot be written to {out}: {error}") from error
    console.print(f"wrote {out} and {out.with_suffix('.json')}")
