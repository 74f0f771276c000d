"""Results of a comparison: one JSON line for each cell that is finished."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from topicloom.errors import ConfigurationError, StorageUnavailableError
from topicloom.storage.disk import replace_file
from topicloom_lab.cli.output import write_lines
from topicloom_lab.comparison.measures import QuestionResult

Key = tuple[str, str, str, int]
"""Source, conversation, strategy and budget of a cell."""


class Cell(BaseModel, frozen=True):
    """One conversation under one strategy and budget."""

    source: str
    """The file or generator, as the configuration names it."""
    conversation: str
    """Its id."""
    strategy: str
    budget: int
    code: str
    """The version of this package that made it: the beginning of a hash of its files."""
    heard: int
    """Messages that were fed."""
    history: int
    """Their tokens."""
    calls: Mapping[str, int] = {}
    """Calls of models while it listened, by role."""
    seconds: float = 0.0
    """Wall time of listening."""
    cpu_seconds: float = 0.0
    """CPU time of the process meanwhile."""
    written: int = 0
    """Bytes of what it left in its folder."""
    asked: tuple[QuestionResult, ...] = ()
    """Questions, in order."""
    failure: str | None = None
    """Why it came to nothing: the error that the strategy raised."""

    @property
    def key(self) -> Key:
        """The key that no other cell has."""
        return self.source, self.conversation, self.strategy, self.budget


class Results:
    """The folder of a comparison: `cells.jsonl`, `run.json`, and the report beside them."""

    def __init__(self, folder: Path) -> None:
        """Args:
        folder: Made when something is written.
        """
        self.folder = folder
        self._cells = folder / "cells.jsonl"
        self._run = folder / "run.json"

    def cells(self) -> dict[Key, Cell]:
        """Cells by key, the newest of each, in the order in which they were finished.

        Raises:
            ConfigurationError: If the file holds something else.
        """
        found: dict[Key, Cell] = {}
        for cell in self._read():
            found.pop(cell.key, None)
            found[cell.key] = cell
        return found

    def add(self, cell: Cell) -> None:
        """Keep a cell.

        Raises:
            StorageUnavailableError: If it cannot be written.
        """
        write_lines(self._cells, [cell.model_dump_json(exclude_defaults=True)], add=True)

    def begin(self, run: Mapping[str, Any], fixed: tuple[str, ...]) -> None:
        """Write down what a run is made with, unless results of another one are here.

        Args:
            run: JSON data; `files` are fingerprints by name, and join those of before.
            fixed: Keys that have to be the same for results to belong together, as has each file.

        Raises:
            ConfigurationError: If they are not.
            StorageUnavailableError: If it cannot be written.
        """
        before = self.run()
        known, given = before.get("files", {}), run.get("files", {})
        pairs = {key: (before.get(key), run[key]) for key in fixed} if before else {}
        pairs |= {name: (known.get(name, digest), digest) for name, digest in given.items()}
        for name, (was, now) in pairs.items():
            if was != now:
                raise ConfigurationError(
                    f"{self.folder} holds results with another {name} ({was!r}, now {now!r}): "
                    "choose another folder with --out, or delete that one"
                )
        run = {**run, "files": {**known, **given}}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(run, ensure_ascii=False, indent=2)
            replace_file(self._run, f"{text}\n".encode(), fsync=False)
            self._repair()
        except OSError as error:
            raise StorageUnavailableError(f"{self._run} cannot be written: {error}") from error

    def run(self) -> dict[str, Any]:
        """The data that `begin` wrote; empty if there is none.

        Raises:
            ConfigurationError: If the file holds something else.
        """
        if not self._run.exists():
            return {}
        try:
            found: dict[str, Any] = json.loads(self._run.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise ConfigurationError(f"{self._run} cannot be read: {error}") from error
        return found

    def _read(self) -> Iterator[Cell]:
        if not self._cells.exists():
            return
        with self._cells.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    return  # it was being written when the run was stopped
                try:
                    yield Cell.model_validate_json(line)
                except ValidationError as error:
                    problem = error.errors()[0]
                    raise ConfigurationError(
                        f"{self._cells}, line {number} is no result: {problem['msg']}"
                    ) from error

    def _repair(self) -> None:
        """Take away a line that was being written when a run was stopped."""
        data = self._cells.read_bytes() if self._cells.exists() else b""
        if data and not data.endswith(b"\n"):
            self._cells.write_bytes(data[: data.rfind(b"\n") + 1])
