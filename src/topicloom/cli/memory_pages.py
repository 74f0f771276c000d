"""A topic as a Markdown file: front matter, brief, and the summary where a review wrote one.

The front matter is JSON values by key, which is YAML too. Its first line is a stamp: a hash of all
that follows, by which a file is known as ours, and as untouched since.

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
from dataclasses import dataclass
from typing import Any

from topicloom.index.phrases import extract_phrases
from topicloom.state.hierarchy import build_full_name, find_path, list_children
from topicloom.state.stored_message import REMOVED, StoredMessage
from topicloom.state.topics import Topic, TopicTable

_KEYWORDS = 12
_FENCE = "---\n"
_STAMP = re.compile(r'---\ntopicloom: "([0-9a-f]{16})"\n')
_UNREADABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What JSON may hold as it is, and YAML or UTF-8 may not."""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """What a topic's file says, but for what is drawn from its messages."""

    session: str
    """The thread."""
    topic: Topic
    """The topic as the roster has it."""
    title: str
    """Its name behind those of the topics that it is a part of."""
    parents: tuple[str, ...]
    """Ids of these topics, from the top down."""
    children: tuple[str, ...]
    """Ids of the topics that it was divided into."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What a file of ours says of itself."""

    session: str
    """The thread."""
    topic: str
    """Id of the topic."""
    untouched: bool
    """Whether it is as it was written."""


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


def render_page(page: MemoryPage, records: Sequence[StoredMessage]) -> bytes:
    """The file of a topic.

    Args:
        page: Its page.
        records: Its messages, in order.
    """
    topic = page.topic
    said = [r.text for r in records if r.role == "user" and r.text != REMOVED]
    matter = _format_front_matter(
        {
            "session": page.session,
            "id": topic.id,
            "name": _one_line(topic.name),
            "status": topic.status,
            "first": topic.first_at or None,
            "last": topic.last_at or None,
            "messages": f"{records[0].id}-{records[-1].id}" if records else None,
            "count": topic.count,
            "parents": list(page.parents),
            "children": list(page.children),
            "importance": topic.importance,
            "keywords": _choose_keywords(said),
        }
    )
    parts = [f"# {page.title}", topic.brief.strip()]
    if topic.summary.strip():
        parts += ["## Summary", topic.summary.strip()]
    rest = f"{matter}{_FENCE}\n" + "\n\n".join(part for part in parts if part) + "\n"
    body = rest.encode("utf-8", "replace")
    return f'{_FENCE}topicloom: "{_hash(body)}"\n'.encode() + body


def read_stamp(data: bytes) -> FileStamp | None:
    """What a file says of itself; None if it is not ours."""
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


def _choose_keywords(texts: Sequence[str]) -> list[str]:
    """The most frequent phrases, the longer first, none a part of another; the same in each run."""
    found = extract_phrases(texts)
    chosen: list[str] = []
    for phrase in sorted(found, key=lambda p: (-found[p], -len(p), p)):
        if len(chosen) < _KEYWORDS and not any(phrase in c or c in phrase for c in chosen):
            chosen.append(phrase)
    return chosen


def _format_front_matter(fields: Mapping[str, Any]) -> str:
    return "".join(f"{key}: {_format_value(value)}\n" for key, value in fields.items())


def _format_value(value: Any) -> str:
    """A value as JSON that YAML reads as the same."""
    text = json.dumps(value, ensure_ascii=False)
    return _UNREADABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:16]
