"""Durable facts about the user, each with the messages that it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from topicloom.state.safe_text import digest_text
from topicloom.state.stored_message import parse_iso_seconds

_MESSAGES = 16
_REPLACED = 64


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
    """Keys of the facts that it took the place of: they may not come back with old messages."""
    refs: tuple[str, ...] = ()
    """Ref of the newest message of each time that it was said, in the transcript: a ref stands for
    all before it, so that it tells of which branch a fact is. None of what was said elsewhere."""
    said: tuple[Said, ...] = ()
    """In threads of a user, each time that it was said, in order of time."""
    since: str = ""
    """The day since which it holds, if the message says so, ISO 8601."""
    until: str = ""
    """The day on which it ended, if the message says so, ISO 8601."""
    quote: str = ""
    """In threads of a user, the user's own words, where they are others."""

    @property
    def key(self) -> str:
        """24 hex digits, the same for texts that differ in case, spaces and a full stop only.

        What no store holds, such as NUL characters, counts for nothing.
        """
        text = " ".join(self.text.replace("\0", "").casefold().split()).rstrip(".!。！ ")
        return digest_text(text, 24)

    @property
    def value(self) -> dict[str, Any]:
        """The fact as JSON data for a store."""
        value = {"fact": self.text, "messages": list(self.messages), "at": self.at}
        lists: dict[str, list[Any]] = {"replaces": list(self.replaces), "refs": list(self.refs)}
        lists["said"] = [list(one) for one in self.said]
        texts = {"since": self.since, "until": self.until, "quote": self.quote}
        return value | {key: given for key, given in (*lists.items(), *texts.items()) if given}

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Fact | None:
        """The fact in a store's value; None if it holds none, as after an edit by hand."""
        text, at = value.get("fact"), value.get("at")
        lists = [value.get("messages"), value.get("replaces", []), value.get("refs", [])]
        if not (isinstance(text, str) and isinstance(at, str)):
            return None
        if not all(isinstance(listed, list) for listed in lists):
            return None
        messages, replaces, refs = (tuple(map(str, listed)) for listed in lists)
        said = value.get("said")
        times = tuple(Said(*map(str, one)) for one in said if _is_said(one)) if said else ()
        since, until, quote = (str(value.get(key, "")) for key in ("since", "until", "quote"))
        return cls(text, messages, at, replaces, refs, times, since, until, quote)


def _is_said(one: object) -> bool:
    return isinstance(one, list) and len(one) == len(Said._fields)


@dataclass(frozen=True, slots=True)
class FactChanges:
    """The changes that a reflection makes to a session's facts."""

    written: tuple[Fact, ...] = ()
    """New facts, and known ones that rest on more messages now."""
    retired: tuple[str, ...] = ()
    """Keys of known facts whose place others took."""
    outdated: int = 0


def merge_facts(
    new: Sequence[tuple[Fact, Sequence[str]]], known: Mapping[str, Fact]
) -> FactChanges:
    """The changes to the known facts that new ones bring.

    Doing it twice changes nothing the second time: a fact that is known keeps its key, and one
    that was replaced comes back only with a message that is newer than what replaced it. With each
    new fact stand the keys of those that it takes the place of.
    """
    facts, outdated = dict(known), 0
    for fact, supersedes in new:
        successors = (f for f in facts.values() if fact.key in f.replaces)
        heir = next((f for f in successors if not _is_later(fact, f)), None)
        outdated += heir is not None
        if heir is None:
            before = facts.get(fact.key)
            heir = fact if before is None else _combine(before, fact)
        own = {heir.key, fact.key}
        olds = [k for k in dict.fromkeys(supersedes) if k in facts and k not in own]
        gone = [k for k in olds if not _is_later(facts[k], fact)]
        # A fact that gives way, or gave way already, leaves its predecessors to its successor.
        inherited = [k for key in gone for k in (*facts.pop(key).replaces, key)]
        replaced = dict.fromkeys(k for k in (*heir.replaces, *inherited) if k != heir.key)
        facts[heir.key] = replace(heir, replaces=tuple(replaced)[-_REPLACED:])
    written = tuple(fact for key, fact in facts.items() if known.get(key) != fact)
    return FactChanges(written, tuple(key for key in known if key not in facts), outdated)


def _combine(before: Fact, after: Fact) -> Fact:
    messages = tuple(dict.fromkeys((*before.messages, *after.messages)))[-_MESSAGES:]
    refs = tuple(dict.fromkeys((*before.refs, *after.refs)))[-_MESSAGES:]
    at = after.at if _is_later(after, before) else before.at
    return replace(before, messages=messages, at=at, refs=refs)


def _is_later(one: Fact, other: Fact) -> bool:
    """True if one was said after another; False where their times cannot be compared."""
    first, second = parse_iso_seconds(one.at), parse_iso_seconds(other.at)
    return first is not None and second is not None and first > second
