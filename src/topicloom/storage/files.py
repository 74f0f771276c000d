"""Sessions as folders of JSONL files: the default, for one machine and any number of processes.

    <root>/<session>/session.json               the session's true name
                     transcript.jsonl           one file a chain
                     topics/topic-t1.jsonl
                     vectors-<fingerprint>.bin  vectors of one embedding space
                     .lock                      held while appending
                     .held                      held by `FileStorage.lock`

Names are made safe by `names.safe_name`. Nothing is created before the first append.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from topicloom.errors import SessionBusyError, StorageUnavailableError
from topicloom.storage.base import SessionLog, VectorLog
from topicloom.storage.bodies import DEFAULT_BYTES, BodyCache
from topicloom.storage.chain import RawEntry
from topicloom.storage.disk import make_folder, reachable, replace_file
from topicloom.storage.jsonl import ChainFile, Place
from topicloom.storage.log import ChainLog
from topicloom.storage.names import original_name, safe_name
from topicloom.storage.shelf import Shelf
from topicloom.storage.vectors import VectorFile

_CARD = "session.json"
_OPEN_SESSIONS = 64
_APPEND_SECONDS = 30.0


class FileStorage:
    """A `Storage` in a folder."""

    def __init__(self, root: Path, *, fsync: bool = True, cache_bytes: int = DEFAULT_BYTES) -> None:
        """Sessions under a folder.

        Args:
            root: The folder; made at the first append.
            fsync: Whether an append waits until it would survive a power cut.
            cache_bytes: Memory for bodies, over all sessions.

        Raises:
            StorageUnavailableError: The root is something else than a folder.
        """
        if root.exists() and not root.is_dir():
            raise StorageUnavailableError(
                f"cannot use {root} for storage: it is not a folder. Choose another"
            )
        self.root = root
        self._fsync = fsync
        self._cache = BodyCache(cache_bytes)
        self._logs = Shelf(self._make, _OPEN_SESSIONS)

    def open(self, session: str) -> SessionLog:
        """The log of a session; see `Storage.open`."""
        return self._logs.get(session)

    def sessions(self) -> list[str]:
        """Names of all sessions that hold anything; see `Storage.sessions`."""
        with reachable(self.root):
            try:
                folders = [folder for folder in self.root.iterdir() if folder.is_dir()]
            except FileNotFoundError:
                return []
            names = [_name_on_card(folder) for folder in folders]
        return sorted(name for name in names if name is not None)

    @contextmanager
    def lock(self, session: str) -> Iterator[None]:
        """Hold a session against other processes; see `Storage.lock`."""
        folder = self.root / safe_name(session)
        lock = FileLock(folder / ".held", timeout=0)
        with reachable(folder):
            make_folder(folder, fsync=False)
            try:
                lock.acquire()
            except Timeout as error:
                raise SessionBusyError(
                    f"session {session!r} is in use by another process: end that one, or name"
                    " another session"
                ) from error
        try:
            yield
        finally:
            lock.release()

    def _make(self, session: str) -> FileLog:
        folder = self.root / safe_name(session)
        return FileLog(session, folder, bodies=self._cache, fsync=self._fsync)


class FileLog(ChainLog):
    """The log of one session in its folder."""

    def __init__(self, session: str, folder: Path, *, bodies: BodyCache, fsync: bool) -> None:
        """A log; made by `FileStorage.open`.

        Raises:
            StorageUnavailableError: The folder cannot be read, or is another session's.
        """
        super().__init__(session, bodies)
        self._folder = folder
        self._fsync = fsync
        self._files: dict[str, ChainFile] = {}
        self._lock = FileLock(folder / ".lock", timeout=_APPEND_SECONDS)
        with reachable(folder):
            self._has_card = self._check_card()

    def vectors(self, fingerprint: str) -> VectorLog:
        """The vectors of one embedding space; see `SessionLog.vectors`."""
        path = self._folder / f"vectors-{safe_name(fingerprint)}.bin"
        return VectorFile(path, self._writing)

    def _append(self, chain: str, head: str | None, entries: Sequence[RawEntry]) -> None:
        file = self._file(chain)
        if head is not None:
            # Before the lock, which makes a folder: a wrong head shall leave nothing behind.
            self._place(chain, head)
        with self._writing(), reachable(file.path):
            file.repair()
            file.append(entries)

    def _prev(self, chain: str, ref: str) -> str | None:
        return self._place(chain, ref).prev

    def _fetch(self, chain: str, refs: Sequence[str]) -> Iterable[RawEntry]:
        with self._mutex:
            places = [(ref, self._place(chain, ref)) for ref in refs]
        file = self._file(chain)
        with reachable(file.path):
            yield from file.read(places)

    def _mismatch(self, chain: str, ref: str) -> str:
        file = self._file(chain)
        line = file.line_number(self._place(chain, ref))
        return (
            f"{file.path}, line {line}: entry {ref} is not what was written. If"
            " you changed it, change it back: storage is append-only. Otherwise restore the file"
            " from a backup"
        )

    def _place(self, chain: str, ref: str) -> Place:
        """Where an entry is; looks at the disk only for an entry not known yet."""
        file = self._file(chain)
        place = file.place(ref)
        if place is not None:
            return place
        with self._mutex, reachable(file.path):
            if file.refresh():
                # The end of a line is missing. With the lock held it is not being written.
                with self._writing():
                    file.repair()
            place = file.place(ref)
        if place is None:
            raise self._missing(chain, ref)
        return place

    def _file(self, chain: str) -> ChainFile:
        file = self._files.get(chain)
        if file is None:
            *folders, name = (safe_name(part) for part in chain.split("/"))
            path = self._folder.joinpath(*folders, f"{name}.jsonl")
            file = ChainFile(path, fsync=self._fsync, reports=self._reports)
            file = self._files.setdefault(chain, file)
        return file

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The folder exists, and no other thread or process appends to this session."""
        with self._mutex:
            with reachable(self._folder):
                make_folder(self._folder, fsync=self._fsync)
                try:
                    self._lock.acquire()
                except Timeout as error:
                    raise SessionBusyError(
                        f"session {self.session!r} could not be appended to: another process has"
                        f" held {self._lock.lock_file} for {_APPEND_SECONDS:.0f} seconds"
                    ) from error
            try:
                with reachable(self._folder):
                    self._write_card()
                yield
            finally:
                self._lock.release()

    def _write_card(self) -> None:
        path = self._folder / _CARD
        if self._has_card and path.exists():
            return
        if not self._check_card():
            card = json.dumps({"name": self.session, "format": 1}) + "\n"
            replace_file(path, card.encode("ascii"), fsync=self._fsync)
        self._has_card = True

    def _check_card(self) -> bool:
        """Whether the folder has a card.

        Raises:
            StorageUnavailableError: It names another session. Some file systems take "Ann" and
                "ann" for one name; two people's sessions must not become one.
        """
        name = _name_on_card(self._folder)
        if name is not None and name != self.session:
            raise StorageUnavailableError(
                f"{self._folder} is the folder of session {name!r} and cannot hold"
                f" {self.session!r} too: use a name that differs in more than case"
            )
        return name is not None


def _name_on_card(folder: Path) -> str | None:
    """The true name of the session in a folder; None when it is not a session's folder."""
    try:
        text = (folder / _CARD).read_bytes()
    except FileNotFoundError:
        return None
    try:
        name = json.loads(text)["name"]
    except (ValueError, KeyError, TypeError):
        return original_name(folder.name)
    return name if isinstance(name, str) else original_name(folder.name)
