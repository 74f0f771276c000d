"""Candidates of a curation: weighed against one another, and those that are new to the prompt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from topicloom.domain.plan import SearchIntent
from topicloom.state.language import CJK_RUN
from topicloom.state.layers import CuratedEntry, Layer
from topicloom.state.receipt import Call
from topicloom.state.safe_text import cut


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may be worth knowing for the reply."""

    id: str
    """Its id among the candidates: `lore_3`, `narrative_t12`."""
    kind: str
    """The kind of its source."""
    text: str
    """All of it."""
    title: str = ""
    """Its name, if it has one: others may mention it by that."""
    score: float = 0.0
    """Fit with the query, 0 to 1, comparable between kinds."""
    tags: tuple[str, ...] = ()
    """Remarks of the source, such as "archived"."""
    knowledge: bool = False
    """True if it says how things are, not what happened."""

    @property
    def preview(self) -> str:
        """Its beginning in one line: all that a selector is shown."""
        return truncate(collapse_whitespace(self.text), PREVIEW_TOKENS)


STAND_IN = 3
"""Best candidates that are taken where no selector answers (the design's value)."""
FAINT = 0.2
"""Score under which nothing is taken by its score alone."""
PREVIEW_TOKENS = 100
"""Tokens of a preview (the design's value)."""
_PAST = 2.0
"""Factor of the weights of the conversation if the message is about the past."""


@dataclass(frozen=True, slots=True)
class Curation:
    """Entries that were picked for a turn."""

    entries: tuple[CuratedEntry, ...] = ()
    """Best first."""
    rationale: str = ""
    model: str = ""
    candidates: int = 0
    failures: tuple[str, ...] = ()
    """Sources that failed, each with its error."""
    calls: tuple[Call, ...] = ()
    """The call of the selector, if there was anything to pick from."""

    @property
    def layer(self) -> Layer | None:
        """The layer for the note of the turn; None if nothing was picked."""
        if not self.entries:
            return None
        return Layer(
            kind="probabilistic", entries=self.entries, rationale=self.rationale, model=self.model
        )


def scale_weights(search: SearchIntent, own: Mapping[str, bool]) -> dict[str, float]:
    """The weight of each kind of source; the strongest has 1.

    The application's `own` kinds count like lore (True) or like the conversation (False).
    """
    narrative = search.weights.narrative * (_PAST if search.when == "past" else 1.0)
    given = {
        "lore": search.weights.lore,
        "narrative": narrative,
        "event": search.weights.event,
        **{kind: search.weights.lore if known else narrative for kind, known in own.items()},
    }
    most = max(given.values())
    return {kind: weight / most for kind, weight in given.items() if weight > 0}


def merge_candidates(
    found: Iterable[Sequence[Candidate]], weights: Mapping[str, float], limit: int
) -> list[Candidate]:
    """The best candidates of all sources by weighted score, each id once, best first."""
    weighed = (
        replace(c, score=c.score * weights.get(c.kind, 0.0)) for c in chain.from_iterable(found)
    )
    unique = {c.id: c for c in reversed(list(weighed))}
    return sorted(unique.values(), key=lambda c: (-c.score, c.id))[:limit]


def drop_shown(candidates: Iterable[Candidate], seen: Collection[CuratedEntry]) -> list[Candidate]:
    """Candidates that the prompt does not show already; what has changed since counts as new."""
    shown: dict[str, list[str]] = {}
    for entry in seen:
        shown.setdefault(entry.id, []).append(collapse_whitespace(entry.text))
    return [
        c
        for c in candidates
        if not any(text.startswith(c.preview.removesuffix("…")) for text in shown.get(c.id, ()))
    ]


def collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


def truncate(text: str, tokens: int) -> str:
    """The beginning of a text, an ellipsis at its end if there is more.

    A token is a CJK character or four others.
    """
    left = 4 * tokens
    for place, character in enumerate(text):
        left -= 4 if CJK_RUN.match(character) else 1
        if left < 0:
            return cut(text, place).rstrip() + "…"
    return text
