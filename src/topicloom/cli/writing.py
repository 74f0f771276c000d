"""Writing results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from topicloom.errors import StorageUnavailableError


def write_lines(out: Path, lines: Iterable[str], *, add: bool = False) -> None:
    """Write lines to a file, after what stands there if they are added.

    Raises:
        StorageUnavailableError: If it cannot be written.
    """
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("a" if add else "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise StorageUnavailableError(f"results cannot be written to {out}: {error}") from error
