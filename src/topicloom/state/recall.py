"""What readers say, and the note of what a turn recalls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel

from topicloom.state.layers import CuratedEntry, Layer
from topicloom.state.session import SearchScope
from topicloom.state.thread_quotes import ThreadQuote

Stretches = tuple[tuple[int, int], ...]
"""Where the parts of a text begin and end, in characters, in their order."""


LEAST_SCORE = 0.3
"""Score of a topic under which its reader, or the index in a reader's place, names nothing."""


class Quote(BaseModel, frozen=True):
    """One original worth quoting."""

    id: str
    """Short id of the message."""
    weight: float
    """How much it is worth against the quotes of all topics, 0 to 1."""


class Reading(BaseModel, frozen=True):
    """A reader's answer on one topic."""

    topic: str
    """Id of the topic."""
    score: float
    """Relevance of the topic to the current conversation, 0 to 1."""
    quotes: tuple[Quote, ...] = ()
    """Originals worth quoting, best first."""
    summary: str = ""
    """What the quotes don't show by themselves."""
    failed: bool = False
    """True if the reader failed; its topic keeps its average."""
    source: Literal["model", "index", "asked"] = "model"
    """Who found the quotes: a model that read the topic, or the local index; or the main model
    asked for them by their ids."""
    search: int = 0
    """Number of the turn's search that it was read for; 0 if there was none."""

    @classmethod
    def by_weights(cls, topic: str, prior: float, weights: Mapping[str, float]) -> Reading:
        """A reading by what the index found in a topic.

        Args:
            topic: Its id.
            prior: Its relevance, 0 to 1.
            weights: Weights of its messages, by short id, 0 to 1.
        """
        sure = weights.items() if prior >= LEAST_SCORE else ()
        found = sorted(((weight, i) for i, weight in sure), reverse=True)
        quotes = tuple(Quote(id=i, weight=round(weight, 4)) for weight, i in found)
        return cls(topic=topic, score=round(prior, 4), quotes=quotes, source="index")


class TopicNote(BaseModel, frozen=True):
    """One topic's part of a recall note."""

    topic: str
    """Id of the topic."""
    name: str
    """Its name at the time."""
    score: float
    """Its relevance at the time."""
    quotes: tuple[str, ...]
    """Short ids of the quoted originals, in conversation order."""
    partial: tuple[str, ...] = ()
    """Those of them that are quoted in part, as excerpts."""
    excerpts: Mapping[str, Stretches] = {}
    """What of each of these is quoted."""
    summary: str = ""
    """The reader's summary."""


class Note(BaseModel, frozen=True):
    """The recall of one turn; it stands behind its user message until the next split."""

    after: int
    """Number of the user message that called for it."""
    topics: tuple[TopicNote, ...] = ()
    """Best topic first."""
    searched: str = ""
    """What was looked for, when nothing was found."""
    scope: SearchScope | None = None
    """What was looked at, if anything was looked for."""
    listed: dict[str, str] = {}
    """A line for each topic found, by id, best first."""
    candidates: tuple[str, ...] = ()
    """Names of topics of which one is meant, to ask the user about."""
    media: tuple[str, ...] = ()
    """Short ids of the messages whose images and other media it shows again."""
    layers: tuple[Layer, ...] = ()
    """What the application's domain added."""
    other_threads: tuple[ThreadQuote, ...] = ()
    """What it quotes of other threads of the user, behind all of this."""

    @property
    def curated(self) -> tuple[CuratedEntry, ...]:
        """What curations picked for it, best first."""
        return tuple(entry for layer in self.layers for entry in layer.entries)

    @property
    def recalls(self) -> bool:
        """True if it says anything of the conversation itself."""
        return bool(
            self.topics or self.searched or self.listed or self.candidates or self.other_threads
        )

    @property
    def empty(self) -> bool:
        """True if it says nothing."""
        return not (self.recalls or self.media or self.layers)


LayoutName = Literal["ledger", "spec"]
"""How the main prompt shows notes: `context/layout.py`."""


def select_notes(notes: Sequence[Note], newest: int, order: LayoutName) -> Sequence[Note]:
    """The notes that a prompt shows whose newest message of the user has that number.

    The spec's order shows what this turn recalled, not what earlier ones did.
    """
    return [n for n in notes if n.after == newest] if order == "spec" else notes


def parse_message_number(message_id: str) -> int:
    """The number in a short id: 42 of `m42`.

    Raises:
        ValueError: If it is no short id.
    """
    number = find_number(message_id, "m")
    if number is None:
        raise ValueError(f"not a message id: {message_id!r}")
    return number


def find_number(short_id: str, kind: Literal["m", "t"]) -> int | None:
    """The number in a short id of a message or a topic, 42 of `m42`; None if it is none."""
    found = re.fullmatch(rf"{kind}([0-9]{{1,18}})", short_id)
    return int(found[1]) if found else None
