"""Rounds: the unit that moves between windows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from topicloom.state.safe_text import shorten_query
from topicloom.state.stored_message import StoredMessage

Ruling = Literal["continues", "opens"]
"""The verdict of an arbiter on a round that may or may not begin a topic."""

LOOK_BACK = 24
"""Messages before a message that it is judged by, where a topic may begin."""
_ANCHORED = 100
"""Characters of the last reply that an anchor begins with."""


@dataclass(frozen=True, slots=True)
class Round:
    """A user message with everything up to the next one.

    Tool calls and their results are inside one round, so moving whole rounds never parts them.
    """

    messages: tuple[StoredMessage, ...]
    """The messages, in order; never empty."""
    context: str = ""
    """The reply of the round before."""
    ruling: Ruling | None = None
    """The arbiter's verdict on the round before it and this one; None if none was asked."""

    @property
    def first(self) -> int:
        """Number of the first message."""
        return self.messages[0].seq

    @property
    def last(self) -> int:
        """Number of the last message."""
        return self.messages[-1].seq

    @property
    def ids(self) -> tuple[str, ...]:
        """Short ids of the messages."""
        return tuple(r.id for r in self.messages)

    @property
    def reply(self) -> str:
        """What was said last in it, not by a tool."""
        said = (m.text for m in reversed(self.messages) if m.role != "tool" and m.text)
        return next(said, "")

    @property
    def rewritten_query(self) -> str:
        """What the user asks, with references resolved where a rewriter is set.

        Of a very long message, its beginning and its end, which topics are searched with as well.
        """
        return shorten_query(self.messages[0].query or self.messages[0].text)

    @property
    def anchor_text(self) -> str:
        """The query behind the beginning of the reply before it."""
        context = f"Context: {self.context[:_ANCHORED]}\n" if self.context else ""
        return f"{context}Query: {self.rewritten_query}"

    @property
    def opens(self) -> bool:
        """True if a topic begins here: by the arbiter, or by the adsorber as the message came."""
        return self.messages[0].opens if self.ruling is None else self.ruling == "opens"

    @property
    def begins(self) -> bool:
        """True if a conversation begins here for certain: no segment goes on across it."""
        return self.messages[0].begins

    @property
    def chat(self) -> str | None:
        """The imported chat that it belongs to."""
        return self.messages[0].chat

    @property
    def text(self) -> str:
        """The texts, one a line."""
        return "\n".join(r.text for r in self.messages)


def group_rounds(messages: Iterable[StoredMessage]) -> list[Round]:
    """Group consecutive messages into rounds; what precedes the first user message is one too.

    No round holds messages of two imported conversations.
    """
    groups: list[list[StoredMessage]] = []
    for message in messages:
        begins = message.role == "user" or message.begins
        if not groups or begins or message.chat != groups[-1][-1].chat:
            groups.append([])
        groups[-1].append(message)
    rounds: list[Round] = []
    for group in groups:
        context = rounds[-1].reply if rounds and not group[0].begins else ""
        rounds.append(Round(tuple(group), context))
    return rounds
