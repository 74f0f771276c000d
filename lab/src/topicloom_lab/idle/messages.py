"""The messages that `topicloom eval idle` asks, and their places in a conversation.

`messages.jsonl` was written by hand for the packaged sample and two people of RealMem (arXiv
2601.06966): 120 idle messages, which need nothing of what was said, and 120 short ones, which do,
with their evidence. `openings.jsonl` names first messages of RealMem's other talk that need nothing
either: all of them were read, and those that go on with something were left out. They measure;
nothing may be trained or tuned on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from topicloom import ConfigurationError
from topicloom.lab import Language
from topicloom_app.recordings.conversations import Conversation
from topicloom_app.recordings.records import read_records
from topicloom_app.recordings.replay import cut_rounds

OPENING = "opening"
"""The category of the messages that begin RealMem's other talk."""


class WrittenMessage(BaseModel, frozen=True, extra="forbid"):
    """A message that was written for a recorded conversation."""

    id: str
    conversation: str
    """Id of the conversation it is asked in."""
    lang: Language
    """Its own language, which may not be that of the conversation."""
    kind: Literal["idle", "short"]
    """Idle ones need nothing of what was said, short ones do."""
    category: str
    """Of idle ones: thanks, small talk, knowledge, errand, or near, which has words of the
    conversation and needs none of it. Of short ones: follow-up, pronoun, other ("And the old
    ones?"), again ("Same as last time"), or return, to an earlier matter."""
    text: str = Field(min_length=1)
    after: str
    """Id of the last message that was said before it."""
    evidence: tuple[tuple[str, ...], ...] = ()
    """What the answer rests on, piece by piece; none for idle ones. A piece is the ids of the
    messages that say the same: one of them is enough."""


@dataclass(frozen=True, slots=True)
class PlacedMessage:
    """A message to ask, with its place in the conversation."""

    message: WrittenMessage
    rounds: int
    """Rounds of the conversation that were said before it."""


def load_messages(path: Path | None = None) -> tuple[WrittenMessage, ...]:
    """The messages of a file, one JSON a line; the packaged ones if there is none.

    Raises:
        NotAConversationError: If the file cannot be read or holds something else.
    """
    where = path or Path(str(files("topicloom_lab.idle").joinpath("messages.jsonl")))
    wanted = '{"id", "conversation", "lang", "kind", "category", "text", "after", "evidence"}'
    return tuple(read_records(where, WrittenMessage, "message to ask", wanted))


def load_openings() -> Mapping[str, tuple[str, ...]]:
    """Ids of the first messages of other talk that need nothing, by RealMem's conversation."""
    text = files("topicloom_lab.idle").joinpath("openings.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return {row["conversation"]: tuple(row["messages"]) for row in rows}


def place_messages(
    conversation: Conversation,
    written: Iterable[WrittenMessage],
    openings: Mapping[str, Sequence[str]],
) -> list[PlacedMessage]:
    """The messages that are asked in a conversation, in the order of their places.

    Raises:
        ConfigurationError: If one names a message that the conversation does not have, or evidence
            that is said after it.
    """
    texts = {m.id: m.text for m in conversation.messages}
    rounds = {i: place for place, r in enumerate(cut_rounds(conversation)) for i in r.ids}
    placed = [
        PlacedMessage(message, _count_rounds(message, rounds))
        for message in written
        if message.conversation == conversation.id
    ]
    for opening in openings.get(conversation.id, ()):
        if opening in rounds:
            message = WrittenMessage(
                id=opening,
                conversation=conversation.id,
                lang="en",
                kind="idle",
                category=OPENING,
                text=texts[opening],
                after=opening,
            )
            placed.append(PlacedMessage(message, rounds[opening]))
    return sorted(placed, key=lambda p: p.rounds)


def _count_rounds(message: WrittenMessage, rounds: Mapping[str, int]) -> int:
    for named in (message.after, *chain.from_iterable(message.evidence)):
        if named not in rounds:
            raise ConfigurationError(
                "message {message!r} names {named!r}, which conversation {conversation!r} does not"
                " have",
                message=message.id,
                named=named,
                conversation=message.conversation,
            )
        if rounds[named] > rounds[message.after]:
            raise ConfigurationError(
                "message {message!r} comes after {after!r}, but its evidence {named!r} is said"
                " later",
                message=message.id,
                after=message.after,
                named=named,
            )
    return rounds[message.after] + 1
