"""Whether the name of a topic is taken, and names that are not."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator

from topicloom.state.folding import fold
from topicloom.state.hierarchy import strip_number
from topicloom.state.safe_text import clip
from topicloom.state.topics import Topic


def find_owner(
    name: str, topics: Iterable[Topic], but: Collection[str | None] = ()
) -> Topic | None:
    """The first of some topics that has a name, `but` those of some ids; None if it is free."""
    return next((t for t in topics if t.name == name and t.id not in but), None)


def make_distinct(name: str, taken: Collection[str], limit: int) -> str:
    """A name of at most `limit` characters that is not taken: `Rain`, or else `Rain (2)`.

    Case and accents make no difference.
    """
    known = {fold(other) for other in taken}
    endings = itertools.chain([""], (f" ({n})" for n in itertools.count(2)))
    names = (clip(name, limit - len(ending)) + ending for ending in endings)
    return next(name for name in names if fold(name) not in known)


def number_names(name: str, taken: Collection[str] = ()) -> Iterator[str]:
    """`Rain (1)`, `Rain (2)` and so on, but for names that are taken."""
    base = strip_number(name)
    names = (f"{base} ({n})" for n in itertools.count(1))
    return (n for n in names if n not in taken)
