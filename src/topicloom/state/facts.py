"""Facts about the user as a prompt shows them, and which of them it shows.

How facts are found and kept is in `reflection/`; here is what a turn needs of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact about the user, as it is kept for a session."""

    day: str
    """The day on which it was said or from which on it holds, ISO 8601."""
    text: str


def choose_facts(
    known: Mapping[str, KnownFact], count_tokens: Callable[[str], int], *, tokens: int, most: int
) -> dict[str, str]:
    """The newest facts that fit some tokens, `most` at most: the day of each by its key.

    The newest comes last, as among those that are known.
    """
    chosen: dict[str, str] = {}
    for key, fact in reversed(list(known.items())):
        tokens -= count_tokens(fact.text)
        if tokens < 0 or len(chosen) == most:
            break
        chosen[key] = fact.day
    return dict(reversed(chosen.items()))
