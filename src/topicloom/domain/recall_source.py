"""Recall sources of an application: what else may help a reply, wherever it is kept.

A class in a file of your own is all that it takes:

    from topicloom import Domain, RecallHit, RecallQuery, build_session_graph

    class Tickets:
        kind = "ticket"
        purpose = "tickets of the help desk"
        knowledge = False

        def search(self, query: RecallQuery) -> list[RecallHit]:
            rows = desk.search(query.text, customer=query.user_id, limit=query.limit)
            return [RecallHit(row.number, row.body, row.score, title=row.subject) for row in rows]

    graph = build_session_graph(domain=Domain(sources=[Tickets()])).compile()

What it finds is ranked with what all other sources find. A selector picks a few, the main model is
shown these whole, and the receipt and the inspector list them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from topicloom.domain.plan import TimeFocus
from topicloom.errors import ConfigurationError, InputError
from topicloom.state.safe_text import replace_surrogates

BUILT_IN_KINDS = ("lore", "narrative", "event")
"""Kinds of the sources that topicloom has itself."""
_KIND = re.compile(r"[a-z][a-z0-9]{0,29}")


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """A turn's search."""

    text: str
    """The user's message with the keywords of the planner that it does not say itself."""
    limit: int
    """The largest number of hits that is of use."""
    session: str
    """The thread."""
    user_id: str = ""
    """The user that the thread belongs to; "" if the application names nobody. A source with data
    of several users has to look at this: nothing else keeps them apart."""
    scope: str = ""
    """The scope of the user that the thread is in, such as a project; "" for none."""
    keywords: tuple[str, ...] = ()
    """Names of things and people that the planner found, most telling first."""
    when: TimeFocus = "now"
    """The time that the message is about."""


@dataclass(frozen=True, slots=True)
class RecallHit:
    """A text that a source found."""

    id: str
    """Its id in the source. The same text keeps its id, so that a prompt shows it once."""
    text: str
    """All of it. The selector is shown its first 100 tokens, the main model its first 500."""
    score: float
    """Fit with the query: 1 if it is what was asked for, 0 if nothing in it fits."""
    title: str = ""
    """Its name, if it has one: others may mention it by that."""
    tags: tuple[str, ...] = ()
    """Remarks for the selector, such as "archived"."""


@runtime_checkable
class RecallSource(Protocol):
    """A source of an application, given to `Domain(sources=[...])`. See the example above.

    `search` is called once in a turn, in a thread of its own, with others at the same time. It may
    raise what it likes: the receipt names the error, and the turn goes on with the other sources.
    The turn waits for it no longer than `Domain.deadline`; a later turn may use what comes late.
    """

    @property
    def kind(self) -> str:
        """One word of lower-case letters and digits, such as "ticket". Ids begin with it."""

    @property
    def purpose(self) -> str:
        """Its content in a few words, for the model that selects: "tickets of the help desk"."""

    @property
    def knowledge(self) -> bool:
        """True if its texts say how things are, as a handbook does; False if they say what
        happened, as a log does. The prompt keeps the two apart, and the planner weighs the first
        like lore, the second like the conversation."""

    def search(self, query: RecallQuery) -> Sequence[RecallHit]:
        """The texts that fit best, best first."""


def check_sources(sources: Iterable[RecallSource]) -> None:
    """Raise ConfigurationError if a source has no kind that can be used, or that of another."""
    seen = set(BUILT_IN_KINDS)
    for source in sources:
        if not isinstance(source, RecallSource):
            raise ConfigurationError(
                f"{type(source).__name__} is no recall source: it needs kind, purpose, knowledge"
                " and search, as RecallSource says"
            )
        kind = source.kind
        if not (isinstance(kind, str) and _KIND.fullmatch(kind)):
            raise ConfigurationError(
                f"the kind of the recall source {type(source).__name__} is {kind!r}: name it by one"
                ' word of lower-case letters and digits, such as "ticket"'
            )
        if kind in seen:
            raise ConfigurationError(
                f"two recall sources have the kind {kind!r}: give {type(source).__name__} another"
            )
        seen.add(kind)


def check_hit(kind: str, hit: object) -> RecallHit:
    """A hit with a score from 0 to 1 and texts that can be stored.

    Raises:
        InputError: If it is no hit, or its id, text or score is of another type.
    """
    if not isinstance(hit, RecallHit):
        raise InputError(f"the recall source {kind!r} returned {hit!r}, which is not a RecallHit")
    if not (isinstance(hit.text, str) and isinstance(hit.score, int | float)):
        raise InputError(
            f"the recall source {kind!r} returned text {hit.text!r} with score {hit.score!r}:"
            " a text and a number are needed"
        )
    score = 0.0 if math.isnan(hit.score) else min(1.0, max(0.0, float(hit.score)))
    return RecallHit(
        replace_surrogates(str(hit.id)),
        replace_surrogates(hit.text),
        score,
        replace_surrogates(str(hit.title)),
        tuple(replace_surrogates(str(tag)) for tag in hit.tags),
    )
