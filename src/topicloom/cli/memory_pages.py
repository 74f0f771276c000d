"""A topic as a Markdown file: front matter, brief, and the summary where a review wrote one.

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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from topicloom.index.phrases import extract_keywords
from topicloom.state.hierarchy import build_full_name, find_path, list_children
from topicloom.state.stored_message import REMOVED, StoredMessage
from topicloom.state.topics import Topic, TopicTable

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
            title=_one_line(build_full_name(topic, table.topics)),
            parents=tuple(t.id for t in find_path(topic, table.topics)[:-1]),
            children=tuple(t.id for t in list_children(topic.id, table.topics)),
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
        "name": _one_line(topic.name),
        "status": topic.status,
        "first": topic.first_at or None,
        "last": topic.last_at or None,
        "messages": f"{messages[0].id}-{messages[-1].id}" if messages else None,
        "count": topic.count,
        "parents": page.parents,
        "children": page.children,
        "importance": topic.importance,
        "keywords": extract_keywords(said, _KEYWORDS),
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


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]
