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
    known: Mapping[str, KnownFact],
    count_tokens: Callable[[str], int],
    *,
    tokens: int,
    most: int,
) -> dict[str, str]:
    """The newest facts that fit: the day of each by its key, the newest last.

    Args:
        known: All facts by key, the newest last.
        count_tokens: Counts the tokens of a text.
        tokens: Tokens that the chosen facts may come to.
        most: How many are chosen at most.
    """
    chosen: dict[str, str] = {}
    for key, fact in reversed(list(known.items())):
        tokens -= count_tokens(fact.text)
        if tokens < 0 or len(chosen) == most:
            break
        chosen[key] = fact.day
    return dict(reversed(chosen.items()))
