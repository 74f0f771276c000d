"""Sessions as folders of JSONL files: the default, for one machine and any number of processes.

    <root>/<session>/session.json               the session's true name
                     transcript.jsonl           one file a chain (`base`), and `purges.jsonl`
                     topics/            copies of topics for people, see `topic_files`
                     vectors-<fingerprint>.bin  vectors of one embedding space
                     .lock                      held while appending
                     .held                      held by `FileStorage.lock`

Names are made safe by `names.safe_name`. Nothing is created before the first append.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_data_path

from topicloom.errors import SessionBusyError, StorageUnavailableError
from topicloom.state.session import FORMAT, check_format
from topicloom.storage.backend import Backend, Batch, Rows
from topicloom.storage.base import TIPS, Storage
from topicloom.storage.disk import make_folder, reachable, read_file, remove_file, replace_file
from topicloom.storage.file_rows import BatchFile
from topicloom.storage.jsonl import ChainFile
from topicloom.storage.log import PURGES
from topicloom.storage.names import original_name, safe_name
from topicloom.storage.topic_files import TopicFiles
from topicloom.texts import FilledText

_INFO = "session.json"
_APPEND_SECONDS = 30.0


class FileStorage(Storage):
    """A `Storage` in a folder."""

    def __init__(
        self, root: Path | str | None, *, fsync: bool = True, topic_files: bool = True
    ) -> None:
        """Sessions under a folder.

        Args:
            root: The folder, made at the first append; None for the user's data folder.
            fsync: True if an append waits until it would survive a power cut.
            topic_files: True to keep a copy of each topic for people, see `TopicFiles`.

        Raises:
            StorageUnavailableError: The root is something else than a folder.
        """
        root = Path(root or user_data_path("topicloom") / "sessions")
        if root.exists() and not root.is_dir():
            raise StorageUnavailableError(
                "cannot use {path} for storage: it is not a folder. Choose another", path=root
            )
        super().__init__()
        self.root = root
        self._fsync = fsync
        self._topic_files = topic_files

    def backend(self, session: str) -> FileBackend:
        made = FileBackend(session, self._folder_of(session), fsync=self._fsync)
        if self._topic_files:
            made.topic_files = TopicFiles(made.folder / "topics")
        return made

    def sessions(self) -> list[str]:
        with reachable(self.root):
            try:
                folders = [folder for folder in self.root.iterdir() if folder.is_dir()]
            except FileNotFoundError:
                return []
            names = [_read_name(_load_info(folder), folder) for folder in folders]
        return sorted(name for name in names if name is not None)

    @contextmanager
    def lock(self, session: str) -> Iterator[None]:
        folder = self._folder_of(session)
        with reachable(folder):
            make_folder(folder, fsync=False)
        busy = FilledText(
            "session {session!r} is in use by another process: end that one, or name another"
            " session",
            session=session,
        )
        with _hold(FileLock(folder / ".held", timeout=0, mode=0o600), folder, busy):
            yield

    def _folder_of(self, session: str) -> Path:
        return self.root / safe_name(session)


class FileBackend(Backend):
    """One session in its folder."""

    def __init__(self, session: str, folder: Path, *, fsync: bool) -> None:
        """Raises StorageUnavailableError if it cannot be read, or is another session's."""
        super().__init__(session)
        self.folder = folder
        self._fsync = fsync
        self._files: dict[str, ChainFile] = {}
        self._lock = FileLock(folder / ".lock", timeout=_APPEND_SECONDS, mode=0o600)
        with reachable(folder):
            self._has_info = self._check_info()

    def entries(self, chain: str) -> ChainFile:
        with self.mutex:
            if chain not in self._files:
                self._files[chain] = ChainFile(
                    self.folder / f"{safe_name(chain)}.jsonl",
                    fsync=self._fsync and chain not in (TIPS, PURGES),  # for who is there now
                    reports=self.reports,
                    mutex=self.mutex,
                    lock=partial(self.lock, create=False),
                )
            return self._files[chain]

    def batches(self, space: str) -> BatchFile:
        return BatchFile(self.folder / f"vectors-{safe_name(space)}.bin")

    def spaces(self) -> Iterable[Rows[Batch]]:
        with reachable(self.folder):
            return [BatchFile(path) for path in sorted(self.folder.glob("vectors-*.bin"))]

    @contextmanager
    def lock(self, *, create: bool) -> Iterator[None]:
        with self.mutex:
            with reachable(self.folder):
                if create:
                    make_folder(self.folder, fsync=self._fsync)
                there = create or self.folder.is_dir()
            if not there:
                yield
                return
            busy = FilledText(
                "session {session!r} could not be written to: another process has held {path} for"
                " {seconds:.0f} seconds",
                session=self.session,
                path=self._lock.lock_file,
                seconds=_APPEND_SECONDS,
            )
            with _hold(self._lock, self.folder, busy, needed=create):
                if create:
                    with reachable(self.folder):
                        self._write_info()
                yield

    def remove(self) -> None:
        with reachable(self.folder):
            for path in self.folder.glob("*"):
                if path.is_dir():
                    rmtree(path)
                elif path.name != _INFO:
                    path.unlink()
            if self.folder.is_dir():
                remove_file(self.folder / _INFO, fsync=self._fsync)
                self.folder.rmdir()

    def sweep(self, chain: str, *, torn: bool = False) -> None:
        self.entries(chain).sweep(torn=torn)

    def _write_info(self) -> None:
        path = self.folder / _INFO
        if self._has_info and path.exists():
            return
        if not self._check_info():
            info = json.dumps({"name": self.session, "format": FORMAT}) + "\n"
            replace_file(path, info.encode("ascii"), fsync=self._fsync)
        self._has_info = True

    def _check_info(self) -> bool:
        """True if the folder says whose it is.

        Raises:
            StorageUnavailableError: It is another's.
            NewerFormatError: A newer version wrote it.
        """
        info = _load_info(self.folder)
        name = _read_name(info, self.folder)
        # Some file systems take "Ann" and "ann" for one name.
        if name is not None and name != self.session:
            raise StorageUnavailableError(
                "{folder} is the folder of session {name!r} and cannot hold"
                " {other!r} too: use a name that differs in more than case",
                folder=self.folder,
                name=name,
                other=self.session,
            )
        check_format(str(self.folder / _INFO), (info or {}).get("format"))
        return name is not None


@contextmanager
def _hold(lock: FileLock, folder: Path, busy: str, *, needed: bool = True) -> Iterator[None]:
    with reachable(folder):
        try:
            lock.acquire()
        except Timeout as error:
            raise SessionBusyError(busy) from error
        except OSError as error:  # who may not write here can still read
            if needed or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
    try:
        yield
    finally:
        lock.release()


def _load_info(folder: Path) -> dict[str, Any] | None:
    """What `session.json` of a folder says, nothing if it is damaged; None if there is none."""
    text = read_file(folder / _INFO)
    if text is None:
        return None
    try:
        info = json.loads(text)
    except ValueError:
        return {}
    return info if isinstance(info, dict) else {}


def _read_name(info: Mapping[str, Any] | None, folder: Path) -> str | None:
    """The true name of the session in a folder; None when it is not a session's folder."""
    if info is None:
        return None
    name = info.get("name")
    return name if isinstance(name, str) else original_name(folder.name)
