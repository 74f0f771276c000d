"""Topics as Markdown memory files: one a topic, for whatever searches files.

They are read by nobody here. A session is told by its checkpoint and its storage, so files can be
written while it runs, deleted, and written again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from topicloom.cli.memory_pages import FileStamp, MemoryPage, build_pages, read_stamp, render_page
from topicloom.errors import StorageError
from topicloom.state.session import Session
from topicloom.storage.base import Storage
from topicloom.storage.disk import make_folder, reachable, remove_file, replace_file
from topicloom.storage.names import safe_name
from topicloom.storage.sessions import SessionStore


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What became of a session's files."""

    written: tuple[str, ...] = ()
    """Names of files that are new or changed."""
    removed: tuple[str, ...] = ()
    """Names of files whose topics are gone."""
    unchanged: int = 0
    """Files that were as they should be, and were not touched."""
    left: Mapping[str, str] = field(default_factory=dict)
    """By name, files that were not written or removed, and why."""


def make_file_name(session: str, topic: str) -> str:
    """The name of a topic's file: the same however the topic is called."""
    return f"{safe_name(f'{session}-{topic}')}.md"


class MemoryFiles:
    """Keeps a folder of memory files up to date. Not safe for several threads.

    Called after each turn, it looks at files only when topics have changed.
    """

    def __init__(self, folder: Path, storage: Storage) -> None:
        """Files in a folder.

        Args:
            folder: Made where it is missing; sessions may share it.
            storage: Where the sessions live.
        """
        self._folder = folder
        self._storage = storage
        self._roster: dict[str, str | None] = {}
        self._pages: dict[str, dict[str, MemoryPage]] = {}

    def __call__(self, state: Mapping[str, Any]) -> MemoryReport:
        """Bring the files up to date with what a turn of the session graph returned."""
        return self.update(Session.model_validate(state["session"]))

    def update(self, session: Session, *, force: bool = False) -> MemoryReport:
        """Bring the files of a session up to date.

        Args:
            session: As its checkpoint has it.
            force: Whether files that were edited by hand, or that somebody else put there, are
                written anew all the same.

        Raises:
            StorageUnavailableError: If the folder cannot be used.
        """
        if self._roster.get(session.id, "") == session.roster and not force:
            return MemoryReport()
        store = SessionStore(self._storage.open(session.id))
        pages = {p.topic.id: p for p in build_pages(session.id, store.topic_table(session))}
        work = _FolderUpdate(self._folder, force)
        known = self._pages.setdefault(session.id, {})
        with reachable(self._folder):
            make_folder(self._folder, fsync=False)
            work.remove_others(session.id, pages)
            for topic, page in pages.items():
                if known.get(topic) == page and not force:
                    work.unchanged += 1
                elif work.write(page, store):
                    known[topic] = page
        if not work.left:
            self._roster[session.id] = session.roster
        return MemoryReport(tuple(work.written), tuple(work.removed), work.unchanged, work.left)


@dataclass(slots=True)
class _FolderUpdate:
    """One pass over a folder."""

    folder: Path
    force: bool
    written: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: int = 0
    left: dict[str, str] = field(default_factory=dict)

    def write(self, page: MemoryPage, store: SessionStore) -> bool:
        """Write a topic's file, if it does not stand there already; whether it stands there now."""
        name = make_file_name(page.session, page.topic.id)
        try:
            text = render_page(page, store.topic_records(page.topic))
        except StorageError as error:
            self.left[name] = str(error)
            return False
        path = self.folder / name
        old = path.read_bytes() if path.exists() else None
        if old == text:
            self.unchanged += 1
            return True
        why = "" if old is None else self._why_not(read_stamp(old), page)
        if why:
            self.left[name] = why
            return False
        replace_file(path, text, fsync=False)
        self.written.append(name)
        return True

    def remove_others(self, session: str, pages: Mapping[str, MemoryPage]) -> None:
        """Remove files of a session that are of none of its pages."""
        for path in sorted(self.folder.glob("*.md")):
            stamp = read_stamp(path.read_bytes())
            ours = stamp is not None and path.name == make_file_name(session, stamp.topic)
            if not ours or stamp is None or stamp.session != session or stamp.topic in pages:
                continue
            if stamp.untouched or self.force:
                remove_file(path, fsync=False)
                self.removed.append(path.name)
            else:
                self.left[path.name] = f"{stamp.topic} is gone, but the file was edited by hand"

    def _why_not(self, stamp: FileStamp | None, page: MemoryPage) -> str:
        """Why a file that is there is not written over; empty if it is."""
        if stamp is not None and (stamp.session, stamp.topic) != (page.session, page.topic.id):
            return f"it is the file of {stamp.topic} of session {stamp.session!r}"
        if self.force or (stamp is not None and stamp.untouched):
            return ""
        return "it was edited by hand" if stamp is not None else "somebody else put it there"
