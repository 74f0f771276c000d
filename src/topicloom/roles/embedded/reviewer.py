"""The embedded reviewer: the most central things said, in order, and importance by rules."""

from __future__ import annotations

import re
from collections.abc import Sequence

from topicloom.index.embedder import Embedder
from topicloom.roles.base import Answer, BriefRequest, Local, ReviewRequest
from topicloom.roles.embedded.brief import EmbeddedBriefWriter, central
from topicloom.state.records import Record
from topicloom.state.review import Assessment

_READ = 400
"""Newest messages of the user that are weighed."""
_QUOTED = 12
"""Messages that a summary quotes at most."""
_SUMMARY, _LINE = 2_000, 240
"""Characters of a summary and of a line in it: a few hundred words at most."""
_SIZE, _SPAN, _USE, _OWN, _TOLD = 0.35, 0.15, 0.25, 0.05, 0.2
"""What exchanges, days, uses, the user's share of the words, and the share of the user's messages
that tell something count. The sum is 1."""
_WORTH_KEEPING = 0.6
"""Least importance of a topic in which the user told something, and most of one in which nothing
was told: `ReviewPolicy.important`, from which topics stay. Whether it will ever be wanted again
only someone can say who understands it. Archiving it all the same cost an order of events in BEAM
500k; see `docs/reviews.md`."""
_ONCE = 2
"""Exchanges of one day up to which a topic that was never used again is over, if all that the
user did was to ask."""
_STATEMENT = re.compile(r"[^.!?。！？\n]{4,}(?:[.!。！\n]|$)")
"""A sentence that does not end as a question."""
_OWN_AFFAIRS = re.compile(
    r"\b(?:i|i['’](?:m|ve|d|ll)|my|mine|myself|we|we['’](?:re|ve|d|ll)|our|ours)\b|[我咱俺]",
    re.IGNORECASE,
)
"""The user's own affairs: who asks about them tells of them ("I earn 85,000, is that little?")."""


class EmbeddedReviewer(Local[ReviewRequest, Assessment]):
    """Extracts and counts; it understands nothing and keeps the topic's name."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._briefs = EmbeddedBriefWriter(embedder)

    def call(self, request: ReviewRequest) -> Answer[Assessment]:
        """Review one topic."""
        about = BriefRequest(request.session, request.topic, request.records, request.language)
        brief = self._briefs.call(about).value
        said = [r for r in request.records if r.role == "user"]
        days = {r.day for r in said}
        return Answer(
            Assessment(
                name=brief.name,
                brief=brief.text,
                summary=self._summary(request.records) or brief.text,
                importance=round(importance_of(request.records, request.uses), 3),
                once=len(said) <= _ONCE
                and len(days) <= 1
                and not (request.uses or any(map(tells, said))),
            )
        )

    def _summary(self, records: Sequence[Record]) -> str:
        said = [r for r in records if r.role == "user" and r.text.strip()][-_READ:]
        if not said:
            return ""
        left = _SUMMARY
        chosen: list[Record] = []
        for record in central(said, self._embedder, _QUOTED):
            left -= min(len(record.text), _LINE) + len(record.day) + 3
            if chosen and left < 0:
                break
            chosen.append(record)
        chosen.sort(key=lambda r: r.seq)
        return "\n".join(f"{r.day}: {' '.join(r.text.split())[:_LINE]}" for r in chosen)


def tells(record: Record) -> bool:
    """Whether a message says anything beside what it asks, or asks about the user's own affairs."""
    said = record.text.strip()
    return _STATEMENT.search(said) is not None or _OWN_AFFAIRS.search(said) is not None


def importance_of(records: Sequence[Record], uses: int) -> float:
    """How much a topic matters, 0 to 1.

    Each cause counts less the more there is of it. What the user told is worth keeping.

    Args:
        records: The topic's messages.
        uses: How often it was quoted lately, and how many topics refer to it.
    """
    said = [r for r in records if r.role == "user"]
    days = len({r.day for r in said})
    words = sum(len(r.text) for r in records)
    own = sum(len(r.text) for r in said) / words if words else 0.0
    told = sum(map(tells, said))
    share = (
        _SIZE * len(said) / (len(said) + 4)
        + _SPAN * days / (days + 2)
        + _USE * uses / (uses + 1)
        + _OWN * min(1.0, 2 * own)
        + _TOLD * told / max(1, len(said))
    )
    return _WORTH_KEEPING + (1 - _WORTH_KEEPING) * share if told else _WORTH_KEEPING * share
