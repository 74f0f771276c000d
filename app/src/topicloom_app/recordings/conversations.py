"""Recorded conversations: one JSON line each, or a plain list of role/content messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator

from topicloom import NotAConversationError, StoredMessage
from topicloom_app.recordings.records import parse_record, read_lines, read_recording
from topicloom_app.recordings.times import read_time


class RecordedMessage(BaseModel, frozen=True):
    """One message of a recording."""

    id: str
    """Its id in the recording."""
    role: Literal["user", "assistant", "system", "tool"]
    text: str = ""
    speaker: str | None = None
    """Name of the speaker, where it is not just the role."""
    time: str | None = None
    """The time, in any form."""

    @field_validator("id", mode="before")
    @classmethod
    def _text_id(cls, value: object) -> str:
        return str(value)

    @field_validator("time", mode="before")
    @classmethod
    def _text_time(cls, value: object) -> object:
        if isinstance(value, int | float):
            return read_time(value) or None
        return value


class Question(BaseModel, frozen=True):
    """A question about a recording."""

    id: str
    category: str = ""
    question: str
    answer: str = ""
    """The expected answer, as text."""
    evidence: tuple[str, ...] = ()
    """Ids of the messages that the answer rests on."""
    asked_at: str | None = None
    """Id of the message that asks it: only what came before counts."""

    @field_validator("answer", mode="before")
    @classmethod
    def _text_answer(cls, value: object) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Conversation(BaseModel, frozen=True):
    """A recorded conversation with questions about it."""

    id: str
    lang: str = "en"
    title: str | None = None
    """Its title, if it is about one matter: imported, it becomes one topic of that name."""
    messages: tuple[RecordedMessage, ...] = Field(min_length=1)
    questions: tuple[Question, ...] = ()


def make_case(
    name: str, messages: Iterable[StoredMessage], asked: str, evidence: str
) -> Conversation:
    """A recording of a session that asks for one of its messages, to be evaluated on.

    Args:
        name: Of the session.
        messages: What was said before it was asked.
        asked: What was asked.
        evidence: Short id of the message that was wanted.
    """
    fields = {"id", "role", "text", "speaker", "time"}
    said = [RecordedMessage(**{f: getattr(m, f) for f in fields}) for m in messages]
    question = Question(id=f"{evidence}-wanted", question=asked, evidence=(evidence,))
    return Conversation(id=name, messages=tuple(said), questions=(question,))


def load_conversations(path: Path) -> Iterator[Conversation]:
    """Read a file of conversations, one at a time.

    Args:
        path: `.jsonl` with a conversation a line, `.json` or `.jsonl` with role/content messages,
            either of them as `.xz` or `.gz`.

    Raises:
        NotAConversationError: If the file cannot be read or holds something else; the message
            names the line.
    """
    values = list(_read_values(path))
    if all(_is_message(value) for _, value in values):
        yield _plain(path, [value for _, value in values])
        return
    for place, value in values:
        yield _plain(path, value) if isinstance(value, list) else _conversation(place, value)


def _read_values(path: Path) -> Iterator[tuple[str, Any]]:
    """The JSON values of a file, each with where it stands: a list, or one a line."""
    text = read_recording(path)
    listed = text.lstrip().startswith("[")
    lines = [(str(path), text)] if listed else read_lines(path, text)
    for place, line in lines:
        try:
            yield place, json.loads(line)
        except (ValueError, RecursionError) as error:
            shown = "" if listed else f": {line[:60]!r}"
            raise NotAConversationError(
                "{place} is not JSON ({error}){shown}", place=place, error=error, shown=shown
            ) from error


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value and "messages" not in value


def _conversation(place: str, value: Any) -> Conversation:
    return parse_record(
        lambda: Conversation.model_validate(value),
        place,
        "conversation",
        '{"id", "messages": [{"id", "role", "text"}]} or messages with "role" and "content"',
    )


def _plain(path: Path, values: list[Any]) -> Conversation:
    messages = [_plain_message(path, number, value) for number, value in enumerate(values, start=1)]
    return _conversation(str(path), {"id": path.name, "messages": messages})


def _plain_message(path: Path, number: int, value: Any) -> RecordedMessage:
    if not _is_message(value):
        raise NotAConversationError(
            "{path}, message {number} has no role: {value}",
            path=path,
            number=number,
            value=json.dumps(value)[:60],
        )
    text = next((value[key] for key in ("content", "text") if value.get(key) is not None), "")
    named = {**value, "id": value.get("id", number), "text": text}
    return parse_record(
        lambda: RecordedMessage.model_validate(named),
        f"{path}, message {number}",
        "message",
        '"role" (user, assistant, system or tool) and "content", a text',
    )
