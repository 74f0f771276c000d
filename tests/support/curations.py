"""Curations to test: sources of a few texts, and selectors that wait until they are let go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event

from topicloom import Answer, LocalRole, Selection, SelectRequest, TurnPlan
from topicloom.domain.curation import Candidate, scale_weights
from topicloom.domain.curator import CurationOrigin, CurationRequest
from topicloom.domain.plan import SearchIntent
from topicloom.domain.sources import CandidateSource
from topicloom.state.layers import CuratedEntry

PATIENCE = 20.0
"""Seconds after which a test that waits is broken."""


@dataclass
class Texts:
    """A source of some texts, in that order."""

    kind: str
    texts: Mapping[str, str]
    error: Exception | None = None
    """Raised by a search."""
    queries: list[str] = field(default_factory=list)

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        self.queries.append(query)
        if self.error is not None:
            raise self.error
        return [
            Candidate(id=i, kind=self.kind, title=i, text=t, score=1 - n / 100)
            for n, (i, t) in enumerate(list(self.texts.items())[:limit])
        ]


@dataclass
class Waiting(LocalRole[SelectRequest, Selection]):
    """Picks the first candidates, but not before it is let go."""

    model: str = "waiting"
    picks: int = 2
    free: Event = field(default_factory=Event)
    """Set it to let every call go, from now on."""
    asked: Event = field(default_factory=Event)
    """Set with the first call."""
    requests: list[SelectRequest] = field(default_factory=list)
    answered: int = 0

    def call(self, request: SelectRequest) -> Answer[Selection]:
        self.requests.append(request)
        self.asked.set()
        assert self.free.wait(PATIENCE)
        self.answered += 1
        return Answer(Selection(tuple(c.id for c in request.candidates[: self.picks]), "why"))


def ready() -> Waiting:
    """A selector that is let go already."""
    selector = Waiting()
    selector.free.set()
    return selector


def lore(*ids: str) -> Texts:
    """Lore of a few words each."""
    return Texts("lore", {i: f"All about {i}." for i in ids})


def work(
    turn: int,
    *sources: Texts,
    session: str = "s",
    head: str | None = None,
    removals: tuple[int, str | None] = (0, None),
    focus: str | None = None,
    terms: frozenset[str] = frozenset({"temple", "key"}),
    plan: TurnPlan | None = None,
    seen: tuple[CuratedEntry, ...] = (),
) -> CurationRequest:
    """What a turn wants, with a newest message of its own unless one is given."""
    plan = plan or TurnPlan(search=SearchIntent(keywords=("temple", "key")))
    listed: dict[str, CandidateSource] = {s.kind: s for s in sources or (lore("lore_1", "lore_2"),)}
    return CurationRequest(
        origin=CurationOrigin(
            session=session,
            turn=turn,
            head=head or ref(turn),
            removals=removals,
            basis="",
            focus=focus,
            terms=terms,
        ),
        question=SelectRequest(
            session=session,
            query=f"The key, for the {turn}th time?",
            tail=(),
            plan=plan,
            candidates=(),
            limit=5,
            language="en",
        ),
        sources=listed,
        weights=scale_weights(plan.search, {}),
        seen=seen,
    )


def ref(number: int) -> str:
    """The ref of a message."""
    return f"{number:016x}"


def refs(count: int) -> list[str]:
    """Refs of a conversation, in order."""
    return [ref(n) for n in range(1, count + 1)]
