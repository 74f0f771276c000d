"""Our own: what `topicloom export --to jsonl` wrote, and recordings as `replay` takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from topicloom.hosting import REMOVED, from_row
from topicloom_app.recordings.conversations import Conversation
from topicloom_app.recordings.exported import ExportedConversation, clean_title
from topicloom_app.recordings.formats.base import (
    Source,
    check_entry,
    find_time,
    read_each,
    tell_role,
)
from topicloom_app.recordings.json_stream import Entry
from topicloom_app.recordings.replay import as_message


class OwnLines:
    """Messages of a session, a line each; conversations of recordings, a line each."""

    name = "jsonl"

    def recognizes(self, entry: Any) -> bool:
        """A message with its place in the session, or a recording whose messages have a text."""
        return _is_row(entry) or _is_recording(entry)

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """The session, or the recordings of a file."""
        for recorded, group in groupby(entries, lambda e: _is_recording(e.value)):
            if recorded:
                yield from read_each(group, source, _begin_recording, _read_recording)
            else:
                yield _read_rows(group, source)


def _is_row(entry: object) -> bool:
    return isinstance(entry, Mapping) and "seq" in entry and "role" in entry


def _is_recording(entry: object) -> bool:
    if not (isinstance(entry, Mapping) and "id" in entry):
        return False
    messages = entry.get("messages")
    first = messages[:50] if isinstance(messages, list) else []
    return any(isinstance(m, Mapping) and "role" in m and "text" in m and "id" in m for m in first)


def _read_rows(entries: Iterable[Entry], source: Source) -> ExportedConversation:
    """The messages of a session. They come by their number: an export is in the order of time."""
    gathered, rows = ExportedConversation(source.name, own_times=True), list[tuple[int, Entry]]()
    for entry in entries:
        number = entry.value.get("seq") if isinstance(entry.value, Mapping) else None
        rows.append((number if isinstance(number, int) else len(rows) + 1, entry))
    for number, entry in sorted(rows, key=lambda row: row[0]):
        with gathered.reading(f"line {number}"):
            stored = from_row(check_entry(entry.value))
            if stored.text == REMOVED:
                gathered.skipped["removed on request"] += 1
                continue
            gathered.add_as_stored(stored)
    return gathered


def _begin_recording(value: Mapping[str, Any], name: str) -> ExportedConversation:
    title = value.get("title")
    return ExportedConversation(
        str(value.get("id", name)), None if title is None else clean_title(title)
    )


def _read_recording(
    value: Mapping[str, Any], into: ExportedConversation, source: Source
) -> Iterator[ExportedConversation]:
    for number, message in enumerate(value["messages"], 1):
        with into.reading(f"message {number}"):
            recorded = Conversation.model_validate({"id": into.id, "messages": [message]}).messages[
                0
            ]
            said = as_message(recorded)
            if recorded.role in ("system", "tool"):
                tell_role(into, recorded.role, None, None, "")
            else:
                # Numbers of messages are those of one conversation.
                named = said.model_copy(update={"id": f"{into.id}-{recorded.id}"})
                into.add(named, find_time(message))
    yield into
