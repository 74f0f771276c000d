"""What the inspector's page is sent, and what it sends."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, RootModel

from topicloom.graph.memory import Memory
from topicloom.graph.memory_values import MemoryTopic
from topicloom.state.stored_message import StoredMessage

_TEXT = 20_000
"""Characters of a message in a list; one that is asked for alone comes whole."""


class SessionView(BaseModel, frozen=True):
    """A session, and what may be done with it."""

    name: str
    count: int
    """Messages in it."""
    tail: int
    """Number of the first message that is in no topic yet."""
    turn: int
    """Turns taken."""
    model: str
    """A line on the model that replies."""
    editing: bool
    """True if the server takes changes."""
    sessions: tuple[str, ...]
    """Names of all sessions that can be opened."""


class TopicView(MemoryTopic, frozen=True):
    """A topic, with how relevant it was lately."""

    relevance: float | None
    """0 to 1, the mean of the last rounds; None if it is not active."""


class ShownMessage(BaseModel, frozen=True):
    """A message as it was said."""

    id: str
    seq: int
    role: str
    label: str
    """Who said it."""
    time: str
    text: str
    whole: bool
    """False if the text goes on."""
    media: int
    """Images and files in it."""
    topic: str
    """Id of the topic that it is in; "" if in none yet."""
    relevance: float | None = None
    """Of what was searched for: 0 to 1."""


class TurnMark(BaseModel, frozen=True):
    """What a turn did, for a line over the days."""

    message: str
    """Id of the message that it answered."""
    day: str
    quoted: tuple[str, ...]
    """Ids of topics."""
    woken: tuple[str, ...]
    split: tuple[str, ...]
    searched: bool
    """True if all topics were searched, as for `I told you`."""


class NewMessage(BaseModel, frozen=True):
    """A message to answer, or only to record."""

    text: str = Field(max_length=200_000)
    """"" for the reply to a message that still waits for one."""
    answer: bool = True


class Editing(BaseModel, frozen=True):
    """Whether changes are taken from now on."""

    on: bool


class Forget(BaseModel, frozen=True):
    """What to remove for good: ids of topics, of messages, ranges."""

    what: tuple[str, ...] = Field(min_length=1, max_length=1_000)


class _Change(BaseModel, frozen=True):
    """The name of a method of `Memory`, and what it is called with."""

    do: str

    def make(self, memory: Memory) -> None:
        getattr(memory, self.do)(**self.model_dump(exclude={"do"}))


class _TopicChange(_Change):
    topic_id: str = Field(alias="topic")


class _Rename(_TopicChange):
    do: Literal["rename"]
    name: str


class _Move(_TopicChange):
    do: Literal["move"]
    messages: str


class _Split(_TopicChange):
    do: Literal["split"]
    messages: str
    name: str


class _Merge(_TopicChange):
    do: Literal["merge"]
    into: str


class _Pin(_TopicChange):
    do: Literal["pin"]
    pinned: bool


class _PutAway(_TopicChange):
    do: Literal["archive", "restore"]


class _CorrectFact(_Change):
    do: Literal["correct_fact"]
    key: str
    text: str = Field("", max_length=2_000)


class _ForgetFact(_Change):
    do: Literal["forget_fact"]
    key: str


class _Undo(_Change):
    do: Literal["undo"]
    change_id: str = Field("", alias="change")


class Change(
    RootModel[
        Annotated[
            _Rename
            | _Move
            | _Split
            | _Merge
            | _Pin
            | _PutAway
            | _CorrectFact
            | _ForgetFact
            | _Undo,
            Field(discriminator="do"),
        ]
    ]
):
    """A change to topics, by the name of what `Memory` does."""


def show_message(
    message: StoredMessage, topic: str, *, most: int = _TEXT, relevance: float | None = None
) -> ShownMessage:
    """A message in view, with at most so many characters."""
    return ShownMessage(
        id=message.id,
        seq=message.seq,
        role=message.role,
        label=message.label,
        time=message.time,
        text=message.text[:most],
        whole=len(message.text) <= most,
        media=len(message.media),
        topic=topic,
        relevance=relevance,
    )
