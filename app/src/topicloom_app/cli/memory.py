"""`topicloom memory`: a session's topics as Markdown files, for tools that search files.

The files are an export: no command reads them back. They can be written while a session runs,
deleted, and written again. A file is front matter, brief, and the summary where a review wrote one.

The front matter is JSON values by key, which is YAML too. Its first line is a stamp: a hash of all
that follows, which tells our files from others and shows whether they were edited since.

    ---
    topicloom: "5f0c1d3a9e8b7264"
    session: "house"
    id: "t3"
    ...
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from topicloom import Session, SessionStore, Storage, StorageError, StoredMessage, Topic
from topicloom.hosting import (
    REMOVED,
    FilledText,
    TopicTable,
    build_full_name,
    find_keywords,
    find_path,
    reachable,
    replace_file,
    safe_name,
)
from topicloom_app.cli.console import CliOptions, open_console, print_dim, print_json, print_line
from topicloom_app.cli.context import open_context
from topicloom_app.cli.words import say


def run_memory(
    cli: CliOptions, name: str, out: Path, *, force: bool, as_json: bool = False
) -> None:
    """Bring the memory files of a session up to date, and print the changes."""
    context, console = open_context(cli), open_console()
    session, _ = context.read_session(name)
    report = MemoryFiles(out, context.storage).update(session, force=force)
    if as_json:
        print_json([asdict(report)])
        return
    for file, why in report.left.items():
        print_line(console, "left {what} as it is: {why}", style="yellow", what=file, why=say(why))
    print_dim(
        console,
        "{written} written, {unchanged} unchanged, {removed} removed in {folder}",
        written=len(report.written),
        unchanged=report.unchanged,
        removed=len(report.removed),
        folder=out,
    )
    if report.left and not force:
        print_dim(console, "--force writes over what was edited")


@dataclass(slots=True)
class MemoryReport:
    """The result of an update."""

    written: list[str] = field(default_factory=list)
    """Names of files that are new or changed."""
    removed: list[str] = field(default_factory=list)
    """Names of files whose topics are gone."""
    unchanged: int = 0
    """Files that were up to date."""
    left: dict[str, str] = field(default_factory=dict)
    """By name, files that were not written or removed, and why."""


def make_file_name(session: str, topic: str) -> str:
    """The name of a topic's file, which does not change with the topic's name."""
    return f"{safe_name(f'{session}-{topic}')}.md"


class MemoryFiles:
    """Keeps a folder of memory files up to date. Not safe for several threads.

    Called after each turn, it looks at files only when topics have changed.
    """

    def __init__(self, folder: Path, storage: Storage) -> None:
        """Write into a folder, which is made where it is missing and which sessions may share."""
        self._folder = folder
        self._storage = storage
        self._done: dict[str, tuple[str | None, int]] = {}
        self._pages: dict[str, dict[str, MemoryPage]] = {}

    def __call__(self, state: Mapping[str, Any]) -> MemoryReport:
        """Bring the files up to date with the state that a turn of the session graph returned."""
        return self.update(Session.model_validate(state["session"]))

    def update(self, session: Session, *, force: bool = False) -> MemoryReport:
        """Bring the files of a session up to date.

        Args:
            session: As its checkpoint has it.
            force: Write over files that were edited by hand or come from elsewhere.

        Raises:
            StorageUnavailableError: If the folder cannot be used.
        """
        store = SessionStore(self._storage.open(session.id))
        state = session.roster, store.log.purges
        if self._done.get(session.id) == state and not force:
            return MemoryReport()
        pages = {p.topic.id: p for p in build_pages(session.id, store.topic_table(session))}
        work = _FolderUpdate(self._folder, force)
        report = work.report
        if self._done.get(session.id, state)[1] != store.log.purges:
            self._pages.pop(session.id, None)  # what was purged may stand in any of them
        known = self._pages.setdefault(session.id, {})
        with reachable(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            work.remove_others(session.id, pages)
            for topic, page in pages.items():
                if known.get(topic) == page and not force:
                    report.unchanged += 1
                elif work.write(page, store, session):
                    known[topic] = page
        if not report.left:
            self._done[session.id] = state
        return report


@dataclass(slots=True)
class _FolderUpdate:
    """One pass over a folder."""

    folder: Path
    force: bool
    report: MemoryReport = field(default_factory=MemoryReport)

    def write(self, page: MemoryPage, store: SessionStore, session: Session) -> bool:
        """Write a topic's file where it is missing or old; True if it is up to date now."""
        name = make_file_name(page.session, page.topic.id)
        try:
            text = render_page(page, store.topic_messages(session, page.topic))
        except StorageError as error:
            self.report.left[name] = str(error)
            return False
        path = self.folder / name
        old = path.read_bytes() if path.exists() else None
        if old == text:
            self.report.unchanged += 1
            return True
        reason = "" if old is None else self._explain_refusal(read_stamp(old), page)
        if reason:
            self.report.left[name] = reason
            return False
        replace_file(path, text, fsync=False)
        self.report.written.append(name)
        return True

    def remove_others(self, session: str, pages: Mapping[str, MemoryPage]) -> None:
        """Remove files of a session that belong to none of its pages."""
        for path in sorted(self.folder.glob("*.md")):
            stamp = read_stamp(path.read_bytes())
            ours = stamp is not None and path.name == make_file_name(session, stamp.topic)
            if not ours or stamp is None or stamp.session != session or stamp.topic in pages:
                continue
            if stamp.untouched or self.force:
                path.unlink()
                self.report.removed.append(path.name)
            else:
                gone = "{topic} is gone, but the file was edited by hand"
                reason = FilledText(gone, topic=stamp.topic)
                self.report.left[path.name] = reason

    def _explain_refusal(self, stamp: FileStamp | None, page: MemoryPage) -> str:
        """The reason not to write over a file; empty if it may be."""
        if stamp is not None and (stamp.session, stamp.topic) != (page.session, page.topic.id):
            other = "it is the file of {topic} of session {session!r}"
            return FilledText(other, topic=stamp.topic, session=stamp.session)
        if self.force or (stamp is not None and stamp.untouched):
            return ""
        return "it was edited by hand" if stamp is not None else "somebody else put it there"


_KEYWORDS = 12
_FENCE = "---\n"
_STAMP = re.compile(r'---\ntopicloom: "([0-9a-f]{16})"\n')
_UNREADABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Characters that JSON may hold as they are, and YAML or UTF-8 may not."""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """The contents of a topic's file, but for what is drawn from its messages."""

    session: str
    topic: Topic
    title: str
    """The topic's name behind those of its parents."""
    parents: tuple[str, ...]
    """Ids of the topics that it is a part of, from the top down."""
    children: tuple[str, ...]
    """Ids of the topics that it was divided into."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """The session and topic that a file names."""

    session: str
    topic: str
    untouched: bool
    """True if nobody edited the file."""


def build_pages(session: str, table: TopicTable) -> list[MemoryPage]:
    """The pages of a session: of all topics that have a brief or a summary and were not merged."""
    return [
        MemoryPage(
            session=session,
            topic=topic,
            title=" ".join(build_full_name(topic, table.topics).split()),
            parents=tuple(t.id for t in find_path(topic, table.topics)[:-1]),
            children=tuple(t.id for t in table if t.parent == topic.id),
        )
        for topic in table
        if topic.status != "merged" and (topic.brief or topic.summary)
    ]


def render_page(page: MemoryPage, messages: Sequence[StoredMessage]) -> bytes:
    """The file of a topic, from its page and its messages in order."""
    topic = page.topic
    said = [r.text for r in messages if r.role == "user" and r.text != REMOVED]
    fields: dict[str, Any] = {
        "session": page.session,
        "id": topic.id,
        "name": " ".join(topic.name.split()),
        "status": topic.status,
        "first": topic.first_at or None,
        "last": topic.last_at or None,
        "messages": f"{messages[0].id}-{messages[-1].id}" if messages else None,
        "count": topic.count,
        "parents": page.parents,
        "children": page.children,
        "importance": topic.importance,
        "keywords": find_keywords(said, _KEYWORDS),
    }
    matter = "".join(f"{key}: {_format_value(value)}\n" for key, value in fields.items())
    parts = [f"# {page.title}", topic.brief.strip()]
    if topic.summary.strip():
        parts += ["## Summary", topic.summary.strip()]
    rest = f"{matter}{_FENCE}\n" + "\n\n".join(part for part in parts if part) + "\n"
    body = rest.encode("utf-8", "replace")
    return f'{_FENCE}topicloom: "{_hash(body)}"\n'.encode() + body


def read_stamp(data: bytes) -> FileStamp | None:
    """Read the stamp of a file; None if it is not ours."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    stamp = _STAMP.match(text)
    if stamp is None:
        return None
    fields: dict[str, Any] = {}
    for line in text[stamp.end() :].partition(_FENCE)[0].splitlines():
        key, _, value = line.partition(": ")
        try:
            fields[key] = json.loads(value)
        except ValueError:  # edited by hand
            continue
    untouched = _hash(data[stamp.end() :]) == stamp[1]
    return FileStamp(str(fields.get("session", "")), str(fields.get("id", "")), untouched)


def _format_value(value: Any) -> str:
    """A value as JSON that YAML reads as the same value."""
    text = json.dumps(value, ensure_ascii=False)
    return _UNREADABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]
