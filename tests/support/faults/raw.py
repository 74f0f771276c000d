"""What a session left in files and databases, read without the package that wrote it.

Only the formats are known here, as docs/reference/storage-format.md tells them: lines of JSON that
are linked by hashes, items of a store, and the newest checkpoint.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import ormsgpack

BEGIN = "0" * 16
"""The ref before the first entry of a chain, in files."""

Body = dict[str, Any]


class Entry(NamedTuple):
    """One entry of a chain."""

    prev: str | None
    body: Body


@dataclass
class Raw:
    """One session, as bytes say."""

    session: Body | None
    """What the newest checkpoint holds of it; None before the first."""
    chains: dict[str, dict[str, Entry]] = field(default_factory=dict)
    """Entries by ref, by the chain's name, of all branches."""
    torn: list[str] = field(default_factory=list)
    """Files whose last line has no end."""
    problems: list[str] = field(default_factory=list)
    """What cannot be read at all."""

    def add(self, chain: str, ref: str, entry: Entry) -> None:
        """Enter an entry; the same in two files of a chain is one."""
        known = self.chains.setdefault(chain, {}).setdefault(ref, entry)
        if known != entry and "purged" not in known.body and "purged" not in entry.body:
            self.problems.append(f"{chain}: {ref} stands there twice, and differs")


def read_files(folder: Path, name: str) -> Raw:
    """A session in a folder, its checkpoints in `checkpoints.sqlite` there."""
    raw = Raw(session_in_sqlite(folder / "checkpoints.sqlite", name))
    place = folder / quote(name, safe="")
    for path in sorted(place.glob("*.jsonl")):
        folder = path.parent.relative_to(place)
        folder = folder.parents[1] if "archived" in folder.parts else folder
        chain = unquote(str(folder / path.stem))
        _read_lines(raw, chain, path.read_bytes(), str(path))
    return raw


def read_items(rows: Iterable[tuple[str, str, Body]], name: str, session: Body | None) -> Raw:
    """A session in a LangGraph store: rows of namespace (joined by dots), key and value."""
    raw = Raw(session)
    label = quote(name, safe="").replace(".", "%2E")
    for namespace, key, value in rows:
        _, owner, *rest = namespace.split(".")
        if owner != label or not rest:
            continue
        if "body" in value:
            raw.add(unquote(rest[0]), key, Entry(value["prev"], json.loads(value["body"])))
    return raw


def session_in_sqlite(path: Path, name: str) -> Body | None:
    """The session of the newest checkpoint in a file of SQLite, which has to be whole."""
    if not path.exists():
        return None
    with closing(sqlite3.connect(path)) as database:
        (verdict,) = database.execute("PRAGMA integrity_check").fetchone()
        if verdict != "ok":
            raise AssertionError(f"{path}: {verdict}")
        if not database.execute(
            "SELECT 1 FROM sqlite_master WHERE name = 'checkpoints'"
        ).fetchone():
            return None
        found = database.execute(
            "SELECT checkpoint FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
            " ORDER BY checkpoint_id DESC LIMIT 1",
            (name,),
        ).fetchone()
    return None if found is None else unpack(found[0])["channel_values"].get("session")


def items_in_sqlite(path: Path) -> Iterator[tuple[str, str, Body]]:
    """The items of a store in a file of SQLite."""
    with closing(sqlite3.connect(path)) as database:
        for prefix, key, value in database.execute("SELECT prefix, key, value FROM store"):
            yield prefix, key, json.loads(value)


def read_postgres(uri: str, name: str) -> Raw:
    """A session in a PostgreSQL database: its checkpoints, and its items in the store."""
    import psycopg

    with psycopg.connect(uri) as database:
        # A set-up that was killed has made some of the tables; these two in this order.
        has = "SELECT to_regclass('store'), to_regclass('checkpoint_blobs')"
        store, checkpoints = database.execute(has).fetchone() or (None, None)
        found = None
        if checkpoints:
            found = database.execute(_NEWEST_SESSION, (name,)).fetchone()
        rows = database.execute("SELECT prefix, key, value FROM store").fetchall() if store else []
    return read_items(rows, name, unpack(found[0]) if found and found[0] else None)


_NEWEST_SESSION = """
SELECT blob FROM checkpoints c LEFT JOIN checkpoint_blobs b
ON b.thread_id = c.thread_id AND b.checkpoint_ns = '' AND b.channel = 'session'
AND b.version = c.checkpoint -> 'channel_versions' ->> 'session'
WHERE c.thread_id = %s AND c.checkpoint_ns = '' ORDER BY c.checkpoint_id DESC LIMIT 1
"""


def unpack(blob: bytes) -> Any:
    """What msgpack holds; of objects that are no data, None."""
    return ormsgpack.unpackb(blob, ext_hook=lambda code, data: None)


def _read_lines(raw: Raw, chain: str, text: bytes, where: str) -> None:
    *lines, rest = text.split(b"\n")
    if rest:
        raw.torn.append(where)
    for number, line in enumerate(lines, 1):
        try:
            body = json.loads(line)
            prev, ref = body.pop("prev"), body.pop("ref")
        except (ValueError, KeyError, AttributeError) as error:
            raw.problems.append(f"{where}:{number} is no entry: {error}")
            continue
        raw.add(chain, ref, Entry(None if prev == BEGIN else prev, body))
