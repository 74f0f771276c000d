"""Changes of a session's memory as clients send them: the page's, and those of the endpoint."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, RootModel

from topicloom import Fact, Memory, MemoryChange, MemoryTopic

Changed = MemoryTopic | Fact | MemoryChange
"""What was changed, as it is then: a topic or a fact; of an undoing, the change that it undid."""


class Forget(BaseModel, frozen=True):
    """What to remove for good: ids of topics, of messages, ranges."""

    what: tuple[str, ...] = Field(min_length=1, max_length=1_000)


class _Change(BaseModel, frozen=True):
    """The name of a method of `Memory`, and what it is called with."""

    do: str

    async def make(self, memory: Memory) -> Changed:
        changed: Changed = await getattr(memory, f"a{self.do}")(**self.model_dump(exclude={"do"}))
        return changed


class _TopicChange(_Change):
    topic_id: str = Field(alias="topic")


class Rename(_TopicChange):
    """Gives a topic a name, which no review and no split changes."""

    do: Literal["rename"]
    name: str


class Move(_TopicChange):
    """Moves messages into a topic, with their whole rounds: `m12-m15, m20`."""

    do: Literal["move"]
    messages: str


class Split(_TopicChange):
    """Makes a new topic of messages of another, with their whole rounds."""

    do: Literal["split"]
    messages: str
    name: str


class Merge(_TopicChange):
    """Merges a topic into another, which keeps its name."""

    do: Literal["merge"]
    into: str


class Pin(_TopicChange):
    """Keeps a topic active, so that it is read for every reply; or no longer."""

    do: Literal["pin"]
    pinned: bool


class PutAway(_TopicChange):
    """Puts a topic into the archive, or takes it out."""

    do: Literal["archive", "restore"]


class CorrectFact(_Change):
    """Says a fact in other words; without a text, confirms it."""

    do: Literal["correct_fact"]
    key: str
    text: str = Field("", max_length=2_000)


class ForgetFact(_Change):
    """Removes a fact, but not the messages that it rests on."""

    do: Literal["forget_fact"]
    key: str


class Undo(_Change):
    """Undoes a change: the one that is named, or the newest of a person."""

    do: Literal["undo"]
    change_id: str = Field("", alias="change")


class Change(
    RootModel[
        Annotated[
            Rename | Move | Split | Merge | Pin | PutAway | CorrectFact | ForgetFact | Undo,
            Field(discriminator="do"),
        ]
    ]
):
    """A change to topics or facts, by the name of what `Memory` does."""
