"""Where the file of a topic lives: beside those of open topics, or in an archive.

    topics/topic-t1.jsonl                      an open topic
    topics/archived/2026-03/topic-t2.jsonl     an archived topic: the same file, moved

A move is a rename, so the file is in one of the two places at any time, and whole. Nothing refers
to a path: a chain is found by its name, first beside the others and then in the archive. What is
added to an archived topic is appended to its file there.

In a LangGraph store nothing moves. The entries stay where they are, and the row of the topic says
that it is archived (`Topic.archived`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from topicloom.storage.disk import fresh_name, make_folder, remove_file, sync_folder

_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
_PACKED = (".jsonl.xz", ".json")


def is_month(text: str) -> bool:
    """True if a text is a month as in `2026-03`."""
    return _MONTH.fullmatch(text) is not None


class ChainPaths:
    """The places where the file of one chain can be. What raises OSError here is not caught."""

    def __init__(self, folder: Path, name: str) -> None:
        """The places of a chain, by its folder and its safe name there."""
        self.plain = folder / f"{name}.jsonl"
        """Its file while it is not archived."""
        self._archive = folder / "archived"
        self._name = name

    def find(self) -> Path:
        """The file that the chain is in now, or that it is to be in if there is none yet.

        Without the lock of the session it may be moved before it is opened.
        """
        if self.plain.exists():
            return self.plain
        files = [*self._archived(".jsonl"), *(p.with_suffix("") for p in self.find_packs())]
        return files[0] if files else self.plain

    def find_all(self) -> list[Path]:
        """The files that there are of the chain, the open one first: one as a rule.

        There are more where a file was copied by hand, or an earlier version wrote another.
        """
        return [path for path in (self.plain, *self._archived(".jsonl")) if path.exists()]

    def find_packs(self) -> list[Path]:
        """The packed files of earlier versions; also one that is gone and left its summary."""
        packed, summary = _PACKED
        found = {*self._archived(packed)}
        found |= {p.with_name(f"{self._name}{packed}") for p in self._archived(summary)}
        return sorted(found)

    def open(self) -> BinaryIO | None:
        """The file opened for reading; None if there is none, or it was moved meanwhile."""
        for path in self._look():
            try:
                return path.open("rb")
            except FileNotFoundError:
                continue
        return None

    def move(self, month: str | None, *, fsync: bool) -> bool:
        """Rename the file into the archive of a month, or out of the archive for None.

        Returns False if it is there already, or there is none. The caller holds the lock.
        """
        source, name = self.find(), self.plain.name
        target = self.plain if month is None else self._archive / month / name
        if source == target or not source.exists():
            return False
        make_folder(target.parent, fsync=fsync)
        source.rename(target)
        if fsync:
            sync_folder(target.parent)
            sync_folder(source.parent)
        return True

    def sweep(self, *, torn: bool, fsync: bool) -> None:
        """Remove what a crash left half-written; with `torn`, what was set aside as damaged too."""
        suffixes = (".jsonl", *_PACKED)
        for path in (self.plain, *(p for s in suffixes for p in self._in_months(s))):
            remove_file(fresh_name(path), fsync=fsync)
            if torn:
                remove_file(torn_name(path), fsync=fsync)

    def _look(self) -> Iterator[Path]:
        yield self.plain
        yield from self._in_months(".jsonl")
        yield self.plain  # it may have been moved back meanwhile

    def _archived(self, suffix: str) -> Iterator[Path]:
        return (path for path in self._in_months(suffix) if path.exists())

    def _in_months(self, suffix: str) -> list[Path]:
        try:
            months = sorted(filter(is_month, os.listdir(self._archive)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [self._archive / month / f"{self._name}{suffix}" for month in months]


def torn_name(path: Path) -> Path:
    """The path that a line is moved to which a crash tore."""
    return path.with_name(path.name + ".torn")
