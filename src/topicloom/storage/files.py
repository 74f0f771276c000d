"""Sessions as folders of JSONL files: the default, for one machine and any number of processes.

    <root>/<session>/session.json               the session's true name
                     transcript.jsonl           one file a chain
                     topics/topic-t1.jsonl
                     topics/archived/2026-03/topic-t2.jsonl.xz   an archived chain
                     topics/archived/2026-03/topic-t2.json       its summary
                     vectors-<fingerprint>.bin  vectors of one embedding space
                     .lock                      held while appending
                     .held                      held by `FileStorage.lock`

Names are made safe by `names.safe_name`. Nothing is created before the first append.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from topicloom.errors import SessionBusyError, StorageUnavailableError
from topicloom.storage.archive_file import ArchiveFile
from topicloom.storage.base import SessionLog, VectorLog
from topicloom.storage.bodies import DEFAULT_BYTES, BodyCache
from topicloom.storage.cards import ArchiveCard
from topicloom.storage.chain import RawEntry
from topicloom.storage.disk import make_folder, reachable, replace_file
from topicloom.storage.file_chain import FileChain, Spot
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
        self._chains: dict[str, FileChain] = {}
        self._lock = FileLock(folder / ".lock", timeout=_APPEND_SECONDS)
        with reachable(folder):
            self._has_card = self._check_card()

    def entries(self, chain: str) -> Mapping[str, str | None]:
        """The ref before each ref of a chain; see `SessionLog.entries`."""
        with self._holding(chain) as files:
            return files.refs()

    def restore(self, chain: str) -> None:
        """Move a chain back out of the archive; see `SessionLog.restore`."""
        with self._holding(chain) as files:
            files.sweep()
            files.restore()

    def archived(self, chain: str) -> ArchiveCard | None:
        """What an archived chain is filed under; see `SessionLog.archived`."""
        with self._mutex, reachable(self._folder):
            return self._files(chain).card()

    def vectors(self, fingerprint: str) -> VectorLog:
        """The vectors of one embedding space; see `SessionLog.vectors`."""
        path = self._folder / f"vectors-{safe_name(fingerprint)}.bin"
        return VectorFile(path, self._writing)

    def _append(self, chain: str, head: str | None, entries: Sequence[RawEntry]) -> None:
        files = self._files(chain)
        if head is not None:
            # Before the lock, which makes a folder: a wrong head shall leave nothing behind.
            self._spot(chain, head)
        with self._writing(), reachable(files.plain.path):
            files.settle()
            files.append(entries)

    def _archive(self, chain: str, month: str, summary: Mapping[str, Any]) -> bool:
        with self._holding(chain) as files:
            files.sweep()
            return files.archive(month, summary)

    def _purge(
        self, chain: str, tombstones: Mapping[str, RawEntry], summary: Mapping[str, Any]
    ) -> int:
        with self._holding(chain) as files:
            files.sweep()
            return files.purge(tombstones, summary)

    def _all_vectors(self) -> Iterable[VectorLog]:
        with reachable(self._folder):
            paths = sorted(self._folder.glob("vectors-*.bin"))
        return [VectorFile(path, self._writing) for path in paths]

    def _prev(self, chain: str, ref: str) -> str | None:
        return self._spot(chain, ref).place.prev

    def _fetch(self, chain: str, refs: Sequence[str]) -> Iterable[RawEntry]:
        with self._mutex:
            spots = [(ref, self._spot(chain, ref)) for ref in refs]
        files = self._files(chain)
        moved: list[str] = []
        with reachable(files.plain.path):
            for raw in files.read(spots):
                if raw.body:
                    yield raw
                else:
                    moved.append(raw.ref)
        if moved:
            # Another process has archived, restored or purged. With the lock held it does not.
            with self._holding(chain):
                files.settle(anew=True)
                found = list(files.read([(ref, self._spot(chain, ref)) for ref in moved]))
            yield from found

    def _mismatch(self, chain: str, ref: str) -> str:
        spot = self._spot(chain, ref)
        if isinstance(spot.part, ArchiveFile) and spot.part.damage:
            return f"entry {ref} of chain {chain!r} cannot be read: {spot.part.damage}"
        with reachable(self._folder):
            place = spot.part.whereabouts(spot.place)
        return (
            f"{place}: entry {ref} is not what was written. If"
            " you changed it, change it back: storage is append-only. Otherwise restore the file"
            " from a backup"
        )

    def _spot(self, chain: str, ref: str) -> Spot:
        """Where an entry is; looks at the disk only for an entry not known yet."""
        files = self._files(chain)
        with self._mutex, reachable(files.plain.path):
            spot = files.spot(ref)
            if spot is None:
                torn = files.refresh()
                spot = files.spot(ref)
                if torn or spot is None:
                    # The end of a line is missing, or an entry is on its way from one file to
                    # another. With the lock held, nobody is writing.
                    with self._holding(chain):
                        spot = files.spot(ref)
        if spot is None:
            raise self._missing(chain, ref)
        return spot

    def _files(self, chain: str) -> FileChain:
        files = self._chains.get(chain)
        if files is None:
            *folders, name = (safe_name(part) for part in chain.split("/"))
            folder = self._folder.joinpath(*folders)
            files = FileChain(folder, name, fsync=self._fsync, reports=self._reports)
            files = self._chains.setdefault(chain, files)
        return files

    @contextmanager
    def _holding(self, chain: str) -> Iterator[FileChain]:
        """A chain brought up to date, and nobody else writes to the session.

        Nothing is created: a session that has no folder has nothing that could be written to.
        """
        files = self._files(chain)
        with self._mutex, reachable(files.plain.path):
            if not self._folder.is_dir():
                yield files
                return
            with self._locked():
                files.settle()
                yield files

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The folder exists, and no other thread or process writes to this session."""
        with self._mutex:
            with reachable(self._folder):
                make_folder(self._folder, fsync=self._fsync)
            with self._locked():
                with reachable(self._folder):
                    self._write_card()
                yield

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with reachable(self._folder):
            try:
                self._lock.acquire()
            except Timeout as error:
                raise SessionBusyError(
                    f"session {self.session!r} could not be written to: another process has"
                    f" held {self._lock.lock_file} for {_APPEND_SECONDS:.0f} seconds"
                ) from error
        try:
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
