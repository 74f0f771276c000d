"""What is left after a purge: the fields that stay of each kind of row; all others go.

Of a message there stay who spoke and when. Of what was made of it (notes, receipts, names, briefs,
summaries) no text is mended: a row that names the message, or tells of a topic that holds it, keeps
the fields that stand here and loses all others, also those that this version does not know. Names,
briefs and summaries are written anew by the next review. Any other row stays as it is; only where a
text in it repeats what was purged, an ellipsis stands for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from topicloom.state.safe_text import KnownText
from topicloom.state.stored_message import MARKS, REMOVED, StoredMessage
from topicloom.storage.message_rows import Row

Fields = Mapping[str, Any]
"""Fields that stay: None for all that is in one, those that stay of what is in it, or a text that
stands in the place of one."""


def _fields(names: str, **inner: Fields | str) -> Fields:
    return {**dict.fromkeys(names.split()), **inner}


_MESSAGE = {"seq", "role", "time", "source", *MARKS}
_FRAME = ("type", "role", "id", "tool_call_id", "status")
"""Of a message of LangChain: what text alone would not give back."""
_PART = _fields("topic name score quotes partial excerpts")
_SCOPE = _fields("briefs read unsearched other_days")
_ENTRY = _fields("id kind knowledge", text="")
_LAYER = _fields("kind text since model", entries=_ENTRY)  # its text is the application's document
_NOTE = _fields("after media other_threads", topics=_PART, scope=_SCOPE, layers=_LAYER)
_SEARCH = _fields("archived found listed media", query="", scope=_SCOPE)
_CALL = _fields(
    "role model topic began seconds input_tokens output_tokens cached_tokens repeated skipped",
    failure=REMOVED,
)
_RECEIPT = _fields(
    "turn user started seconds scores other_threads crowded_out reading idle about view noted"
    " roster active activated deactivated sections window split abandoned steps unasked limits",
    quoted=_PART,
    curated=_fields("id kind"),
    searches=_SEARCH,
    calls=_CALL,
)
_CHANGE = _fields("author time before after undoes")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TELLING = ("topics", "quoted", "listed", "searches", "layers")
"""Fields of notes and receipts that tell of the topics which they name."""


def strip_message(message: StoredMessage) -> dict[str, Any]:
    """The row that is left of a purged message: who spoke and when, and its tool calls' names.

    Without these a conversation falls apart: rounds are found by who spoke, and providers
    refuse results without calls. Names of people, arguments of calls and all texts go.
    """
    stays = message.model_dump(mode="json", include=_MESSAGE, exclude_defaults=True)
    frame = {} if message.whole is None else {"whole": _strip_whole(message.whole)}
    return {"id": message.id} | stays | frame


@dataclass(frozen=True, slots=True)
class PurgedTexts:
    """Messages that are gone, and what tells of them; strips rows that do.

    Rows are taken as they are stored.
    """

    messages: frozenset[str]
    """Short ids of the messages."""
    topics: frozenset[str]
    """Ids of the topics that hold them, or have their names from such a topic."""
    names: frozenset[str]
    """Names that these topics ever had."""
    words: KnownText
    """What was said in the messages."""
    referring: frozenset[str] = frozenset()
    """Ids of other topics, whose readers were shown any of them."""

    def strip_topic(self, row: Row) -> Row:
        """A row of the roster, without brief and summary if its topic holds or refers to any.

        Its name stays if a person gave it, or nobody made it of what was said (loose ends), or
        the topic only refers to them, unless it repeats what was said. The title of an imported
        chat goes.
        """
        holds = row["id"] in self.topics
        if not holds and row["id"] not in self.referring:
            return row
        left = {**row, **dict.fromkeys({"brief", "summary"} & row.keys(), "")}
        marks = row.get("by_hand", ())
        made = holds and "named" not in marks and not row.get("loose")
        if not made and not self.words.is_repeated_in(row["name"]):
            return left
        left["name"] = _plain_name(row["id"])
        if marks:
            left["by_hand"] = [mark for mark in marks if mark != "named"]
        return {key: value for key, value in left.items() if key != "titled"}

    def strip_note(self, row: Row) -> Row:
        return self._strip_telling(row, _NOTE, f"m{row['after']}" in self.messages)

    def strip_receipt(self, row: Row) -> Row:
        return self._strip_telling(row, _RECEIPT, row["user"] in self.messages)

    def strip_edit(self, row: Row) -> Row:
        """An entry of the journal of the document: no edits that the messages asked for."""
        return {**row, "edits": []} if row["message"] in self.messages else row

    def strip_change(self, row: Row) -> Row:
        """An entry of the journal of changes: no names of the topics."""
        return dict(_strip(row, _CHANGE, self._hide))

    def _strip_telling(self, row: Row, stays: Fields, asked: bool) -> Row:
        """What stays of a note or a receipt, which was made for the messages if they `asked`."""
        telling = [row[key] for key in _TELLING if key in row]
        left: dict[str, Any]
        if (
            asked
            or not self.messages.union(self.names).isdisjoint(_list_texts(row))
            or not self.topics.union(self.referring).isdisjoint(map(_get_id, _list_texts(telling)))
        ):
            left = _strip(row, stays)
            for layer in left.get("layers", ()):
                layer["entries"] = []
        else:
            left = _strip(row, stays, self._hide)
        for key in {"topics", "quoted"} & left.keys():
            left[key] = [{**part, "name": self._name(part)} for part in left[key]]
        return left

    def _name(self, part: Row) -> str:
        name = part["name"]
        return _plain_name(part["topic"]) if part["topic"] in self.topics else self._hide(name)

    def _hide(self, text: str) -> str:
        for name in self.names:
            text = text.replace(f"“{name}”", "“…”")
        return text if _DAY.fullmatch(text) else self.words.remove_from(text)


def _strip(value: Any, stays: Fields | str | None, hide: Callable[[str], str] | None = None) -> Any:
    """What stays of a value; with `hide` all of it, and texts that would not stay are hidden."""
    if stays is None or value is None:
        return value
    if isinstance(value, list):
        return [_strip(one, stays, hide) for one in value]
    if isinstance(value, dict) and not isinstance(stays, str):
        kept = value if hide else stays.keys() & value.keys()
        return {key: _strip(value[key], stays.get(key, {}), hide) for key in value if key in kept}
    if hide is None:
        return stays
    return hide(value) if isinstance(value, str) else value


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _list_texts(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from _list_texts(one)


def _get_id(text: str) -> str:
    """The id of a topic in what a curation calls it, `topic_t3`; any other text is as it was."""
    return text.removeprefix("topic_").removeprefix("narrative_")


def _plain_name(topic: str) -> str:
    """A name that says nothing, and that no other topic has: some look topics up by name."""
    return f"topic {topic}"


def _strip_whole(whole: Row) -> dict[str, Any]:
    calls = [
        {"name": call.get("name", ""), "args": {}, "id": call.get("id"), "type": "tool_call"}
        for call in whole.get("tool_calls", ())
    ]
    frame = {key: whole[key] for key in _FRAME if key in whole}
    # The name of a function is asked for by LangChain; other names may be those of people.
    named = {"name": whole["name"]} if whole.get("type") == "function" else {}
    return frame | named | ({"tool_calls": calls} if calls else {}) | {"content": REMOVED}
