"""Values of the memory over HTTP, beside those of `Memory` itself."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from topicloom import Fact, MemoryChange, MemoryTopic, Session, StoredMessage
from topicloom_app.changes import Forget

MessageId = Annotated[str, Field(description="Short id of a message: `m42`.")]
TopicId = Annotated[str, Field(description="Id of a topic: `t3`.")]
Limit = Annotated[int, Field(ge=1, le=200, description="How many at most.")]
Day = Annotated[date | None, Field(description="A day: `2026-03-02`.")]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class Thread(_Value):
    """A thread: one conversation with its memory."""

    thread: str
    """The name of its session."""
    messages: int
    turns: int
    first_unsplit: str
    """Short id of the first message that is in no topic yet, or of the next message if all are."""


class Message(_Value):
    """A message, word for word."""

    id: str
    """Short id: `m42` is the 42nd message."""
    role: str
    """`user`, `assistant`, `tool` or `system`."""
    speaker: str | None
    """The person in a conversation of several."""
    text: str
    time: str
    """ISO 8601."""
    source: str | None
    """The id that the application gave it."""
    whole: dict[str, Any] | None
    """The message as LangChain's data, if its text does not say all: calls of tools, images."""


class FoundMessage(_Value):
    """A message that a search found."""

    message: Message
    topic: str
    """Id of the topic that has it; "" if none has it yet."""
    relevance: float
    """0 to 1, by its place among what was found."""
    fits: bool
    """False if nothing fits the text: then it is only the closest in meaning."""


class UserTimezone(_Value):
    """Where a user is."""

    timezone: str
    """Such as `Europe/Paris`; "" if it is not known."""


class ForgetRequest(Forget, frozen=True):
    """What to remove for good: `{"what": ["t3", "m12-m15"]}`."""

    dry_run: bool = False


class Forgotten(_Value):
    """What was removed for good, or would be."""

    messages: list[Message]
    topics: tuple[str, ...]
    """Topics that held any of them: their names, briefs and summaries go too."""
    facts: dict[str, Fact]
    """Facts that rest on them, by key."""
    left: tuple[str, ...]
    """Where it may still be found, a sentence each."""


class Changed(_Value):
    """What was changed, as it is then; the others are null."""

    topic: MemoryTopic | None = None
    fact: Fact | None = None
    undone: MemoryChange | None = None
    """The change that was undone."""


def show_thread(session: Session) -> Thread:
    """A thread by its session."""
    return Thread(
        thread=session.id,
        messages=session.count,
        turns=session.turn,
        first_unsplit=f"m{session.tail}",
    )


def show_message(message: StoredMessage) -> Message:
    """A message by what is stored of it."""
    return Message.model_validate(message, from_attributes=True)


def show_messages(messages: Iterable[StoredMessage]) -> list[Message]:
    """Messages by what is stored of them."""
    return [show_message(message) for message in messages]
