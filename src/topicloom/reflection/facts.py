"""Durable facts about the user, each with the messages that it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from topicloom.state.folding import fold
from topicloom.state.safe_text import digest_text


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact as a reflector says it, not checked yet."""

    text: str
    messages: tuple[str, ...]
    """Short ids of the messages that it rests on."""
    supersedes: tuple[str, ...] = ()
    """Keys of known facts that hold no more."""
    since: str = ""
    """The day since which it holds, if the message says so: `2026-05-03`, `2026-05` or `2026`."""
    until: str = ""
    """The day on which it ended, if the message says so, likewise."""


class Said(NamedTuple):
    """One time that a fact was said."""

    time: str
    """ISO 8601."""
    message: str
    """Id of the newest message that it rests on."""
    ref: str = ""
    """Ref of that message in the transcript; "" if it is in none."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as it is stored."""

    text: str
    messages: tuple[str, ...]
    """Ids of the messages that it rests on, in order of mention."""
    at: str
    """When the newest of them was said, or a person confirmed or corrected it, ISO 8601."""
    replaces: tuple[str, ...] = ()
    """Keys of the facts that it contradicts: whichever was said last ends the other."""
    said: tuple[Said, ...] = ()
    """Each time that it was said, in order of time; empty for one that an application wrote."""
    since: str = ""
    """The day since which it holds, if the message says so, ISO 8601."""
    until: str = ""
    """The day on which it ended, if the message says so, ISO 8601."""
    quote: str = ""
    """The user's own words, where they are others."""
    origin: str = ""
    """The format of the export that the newest message came from; "" if it was said here."""
    held: bool = False
    """True if no prompt says it until a person confirms it."""

    @property
    def key(self) -> str:
        """24 hex digits, the same for texts that differ in case, spaces and a full stop only.

        What no store holds, such as NUL characters, counts for nothing.
        """
        text = " ".join(fold(self.text.replace("\0", "")).split()).rstrip(".!。 ")
        return digest_text(text, 24)

    @property
    def value(self) -> dict[str, Any]:
        """The fact as JSON data for a store."""
        needed = {"fact": self.text, "messages": list(self.messages), "at": self.at}
        more = {
            "replaces": list(self.replaces),
            "said": [list(one) for one in self.said],
            "since": self.since,
            "until": self.until,
            "quote": self.quote,
            "origin": self.origin,
            "held": self.held,
        }
        return needed | {key: given for key, given in more.items() if given}

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Fact | None:
        """The fact in a store's value; None if it holds none, as after an edit by hand."""
        try:
            return _FACT.validate_python({**value, "text": value.get("fact")})
        except ValidationError:
            return None


_FACT = TypeAdapter(Fact)


@dataclass(frozen=True, slots=True)
class FactChanges:
    """The changes to a session's facts."""

    written: tuple[Fact, ...] = ()
    """New facts, and known ones that were said again."""
    retired: tuple[str, ...] = ()
    """Keys of facts that are removed."""
