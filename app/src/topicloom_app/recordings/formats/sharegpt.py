"""ShareGPT: `{"conversations": [{"from": "human", "value": "..."}]}`, one or a list of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from topicloom_app.recordings.exported import ExportedConversation
from topicloom_app.recordings.formats.base import (
    Source,
    begin_titled,
    read_blocks,
    read_each,
    read_role,
    tell_role,
)
from topicloom_app.recordings.json_stream import Entry

_KEYS = ("conversations", "conversation", "items")


class ShareGPT:
    """Conversations as data sets for training have them."""

    name = "sharegpt"

    def recognizes(self, entry: Any) -> bool:
        """A list of turns that say who they are `from`."""
        turns = _find_turns(entry)
        return bool(turns) and isinstance(turns[0], dict) and "from" in turns[0]

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """The conversations of a file."""
        begin = partial(begin_titled, ids=("id",), title="title", began="time")
        return read_each(entries, source, begin, _read)


def _find_turns(entry: object) -> list[Any]:
    if not isinstance(entry, Mapping):
        return []
    return next((entry[k] for k in _KEYS if isinstance(entry.get(k), list)), [])


def _read(
    value: Mapping[str, Any], conversation: ExportedConversation, source: Source
) -> Iterator[ExportedConversation]:
    if not value.get("title"):
        conversation.title = None  # what it is about is not said: it may be many things
    for number, turn in enumerate(_find_turns(value), 1):
        with conversation.reading(f"message {number}"):
            text = read_blocks(
                turn.get("value", turn.get("text")), conversation, f"message {number}"
            )
            # Ids of messages are none here, or numbers that are alike in every conversation.
            tell_role(conversation, read_role(turn["from"]), None, turn.get("time"), text)
    yield conversation
