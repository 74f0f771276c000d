"""What the inspector's page sends."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, RootModel

from topicloom import Memory


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
