"""The files of an export: single ones, those of a folder, and those in an archive."""

from __future__ import annotations

import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO, cast

from topicloom import NotAConversationError
from topicloom_app.recordings.limits import LimitedReader, check_unpacked

_TEXTS = frozenset({".json", ".jsonl", ".ndjson", ".txt", ".html", ".htm", ".xz", ".gz", ""})
"""Endings of files that are looked at within a folder or an archive."""
_UNREADABLE = (
    OSError,
    EOFError,
    RuntimeError,
    UnicodeDecodeError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
)
"""What is raised where a file is damaged, or an archive has a password."""


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file with text, by itself or in an archive."""

    path: Path
    """The file, or the archive."""
    member: str = ""
    """Its name in the archive."""
    found: bool = False
    """True if it was found in a folder or an archive; False if the user named it."""

    @property
    def name(self) -> str:
        """What to call it in a report."""
        return f"{self.path.name}: {self.member}" if self.member else str(self.path)

    @property
    def own_name(self) -> str:
        """Its name without folders."""
        return Path(self.member).name or self.path.name

    @property
    def stem(self) -> str:
        """Its name without folder and ending; that of the archive if its own says nothing."""
        inner = Path(self.member).stem
        return self.path.stem if inner in ("", "_chat") else inner

    @contextmanager
    def open(self) -> Iterator[TextIO]:
        """Open it as UTF-8; raises `NotAConversationError` if it cannot be read."""
        try:
            with self._open() as raw:
                yield io.TextIOWrapper(raw, "utf-8-sig", newline="")
        except _UNREADABLE as error:
            raise NotAConversationError(
                "{path} cannot be read: {error}", path=self.name, error=error
            ) from error

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self.member:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as packed:
                yield packed
            return
        suffix = self.path.suffix.lower()
        with self.path.open("rb") as file:
            if suffix == ".xz":
                with lzma.open(file) as unpacked:
                    yield self._limit(unpacked)
            elif suffix == ".gz":
                with gzip.open(file) as unpacked:
                    yield self._limit(cast("IO[bytes]", unpacked))
            else:
                yield file

    def _limit(self, unpacked: IO[bytes]) -> IO[bytes]:
        limited = LimitedReader(unpacked, self.path, self.path.stat().st_size)
        return cast("IO[bytes]", io.BufferedReader(limited))


def find_files(paths: Iterable[Path]) -> list[ExportFile]:
    """The files to read: those that are named, those in folders, and those in archives.

    Raises:
        NotAConversationError: One of the paths does not exist, or an archive cannot be read.
    """
    return [file for path in paths for file in _find(path, named=True)]


def _find(path: Path, *, named: bool) -> Iterator[ExportFile]:
    if path.is_dir():
        for inner in sorted(path.rglob("*")):
            if inner.is_file() and not _is_hidden(inner.relative_to(path)):
                yield from _find(inner, named=False)
    elif not path.exists():
        raise NotAConversationError(
            "{path} cannot be read: there is no such file or folder", path=path
        )
    elif zipfile.is_zipfile(path):
        yield from _list_members(path)
    elif named or path.suffix.lower() in _TEXTS:
        yield ExportFile(path, found=not named)


def _list_members(path: Path) -> Iterator[ExportFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [i for i in archive.infolist() if not i.is_dir() and _is_text(i.filename)]
    except _UNREADABLE as error:
        raise NotAConversationError(
            "{path} cannot be read: {error}. Export it again", path=path, error=error
        ) from error
    # An archive cannot lie about it: `zipfile` reads no more bytes than it says.
    check_unpacked(path, sum(m.file_size for m in members), sum(m.compress_size for m in members))
    for name in sorted(member.filename for member in members):
        yield ExportFile(path, name, found=True)


def _is_text(member: str) -> bool:
    path = Path(member)
    return path.suffix.lower() in _TEXTS and not _is_hidden(path)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)
