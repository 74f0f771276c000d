"""Whether a fact rests on what the user said: no model is believed on its word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from topicloom.index.words import words_of
from topicloom.state.facts import Claim, Fact
from topicloom.state.records import Record
from topicloom.state.reflection import seconds_of

_OWN_SHARE = 2 / 3
"""Share of a fact's words that the user has to have said. The rest leaves room for turning "I
live" into "the user is living"; what a fact could get wrong, figures and most names, is whole
words of which none may be missing or few are there."""
_REPORTING = re.compile(r"\b(?:the )?users?(?:'s)?\b|\bsays?\b|用户|对方|本人|自己", re.IGNORECASE)
"""Words that tell of whom a fact is."""


@dataclass(frozen=True, slots=True)
class Grounded:
    """What of a reflector's claims may be kept."""

    facts: tuple[tuple[Fact, tuple[str, ...]], ...]
    """Facts in order, each with the keys of those that it takes the place of."""
    dropped: Mapping[str, int]
    """How many were dropped, by reason."""


def grounded(
    claims: Sequence[Claim], records: Sequence[Record], ids: Mapping[str, str]
) -> Grounded:
    """Keep the claims that rest on the user's own messages.

    Args:
        claims: What the reflector said.
        records: What it was given.
        ids: The lasting id of each record, by short id.
    """
    by_id = {r.id: r for r in records}
    dropped: Counter[str] = Counter()
    facts: list[tuple[Fact, tuple[str, ...]]] = []
    for claim in claims:
        reason = flaw_in(claim, by_id)
        if reason:
            dropped[reason] += 1
            continue
        newest = max((by_id[i] for i in claim.messages), key=_when)
        lasting = tuple(dict.fromkeys(ids[i] for i in claim.messages))
        facts.append((Fact(claim.text, lasting, newest.time), claim.supersedes))
    return Grounded(tuple(facts), dict(dropped))


def flaw_in(claim: Claim, records: Mapping[str, Record]) -> str:
    """Why a claim may not be kept; "" if it may.

    Args:
        claim: What the reflector said.
        records: What it was given, by short id.
    """
    if not claim.messages:
        return "rests on no message"
    if any(i not in records for i in claim.messages):
        return "rests on a message that was not shown"
    own = [records[i] for i in claim.messages if records[i].role == "user"]
    if not own:
        return "rests on no message of the user"
    words = set(words_of(_REPORTING.sub(" ", claim.text)))
    said = {word for record in own for word in words_of(record.line)}
    if not words:
        return "says nothing"
    missing = words - said
    if len(missing) > (1 - _OWN_SHARE) * len(words) or any(map(_has_digit, missing)):
        return "is not in the user's words"
    return ""


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _when(record: Record) -> tuple[float, int]:
    return seconds_of(record.time) or 0.0, record.seq
