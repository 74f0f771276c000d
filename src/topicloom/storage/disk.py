"""Putting bytes on disk so that they are there, whole, or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from topicloom.errors import StorageUnavailableError

_BINARY = getattr(os, "O_BINARY", 0)


@contextmanager
def reachable(path: Path) -> Iterator[None]:
    """Turn an error of the operating system about a path into one with a way out.

    Raises:
        StorageUnavailableError: Something in the context raised OSError.
    """
    try:
        yield
    except OSError as error:
        raise StorageUnavailableError(
            "cannot use {path} for storage: {error}. Choose"
            " another storage folder, or make this one a folder that you may write to and that"
            " has space left",
            path=error.filename or path,
            error=error.strerror or error,
        ) from error


def read_file(path: Path) -> bytes | None:
    """The content of a file; None when there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def append_bytes(path: Path, data: bytes, *, fsync: bool) -> None:
    """Append to a file, making it and its folders where needed; whole or not at all.

    What is made is its owner's alone, whatever the umask leaves to others.

    The caller holds the lock of the session: a write that fails half-way is cut off again. With
    `fsync`, wait until the data, and a new file's name, would survive a power cut.
    """
    is_new = not path.exists()
    if is_new:
        make_folder(path.parent, fsync=fsync)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _BINARY, 0o600)
    try:
        before = os.fstat(file).st_size
        try:
            _write_all(file, data)
            if fsync:
                os.fsync(file)
        except OSError:
            os.ftruncate(file, before)
            raise
    finally:
        os.close(file)
    if is_new and fsync:
        sync_folder(path.parent)


def make_folder(folder: Path, *, fsync: bool) -> None:
    """Make a folder and those above it, for their owner alone.

    With `fsync`, the new names survive a power cut.
    """
    if folder.is_dir():
        return
    missing = [above for above in (folder, *folder.parents) if not above.is_dir()]
    for fresh in reversed(missing):
        fresh.mkdir(0o700, exist_ok=True)
        if fsync:
            sync_folder(fresh.parent)


def sync_file(path: Path) -> None:
    """Wait until what is in a file would survive a power cut."""
    _sync(path, os.O_RDWR | _BINARY)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder would survive a power cut; nothing to do on Windows."""
    if os.name == "posix":
        _sync(folder, os.O_RDONLY)


def replace_file(path: Path, data: bytes, *, fsync: bool) -> None:
    """Write a small file under another name and read it back before it replaces the old one.

    Raises:
        OSError: It could not be written, or not be read back; the old file is as it was.
    """
    fresh = fresh_name(path)
    fresh.unlink(missing_ok=True)
    append_bytes(fresh, data, fsync=fsync)
    if fresh.read_bytes() != data:
        raise OSError(errno.EIO, "what was written could not be read back", str(fresh))
    fresh.replace(path)
    if fsync:
        sync_folder(path.parent)


def fresh_name(path: Path) -> Path:
    """The path under which a file's new content is written before it takes the old one's place."""
    return path.with_name(path.name + ".new")


def remove_file(path: Path, *, fsync: bool) -> None:
    try:
        path.unlink()
    except FileNotFoundError:
        return
    if fsync:
        sync_folder(path.parent)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_all(file: int, data: bytes) -> None:
    # One write as a rule; more only where the system took less than it was given.
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
