"""The node that has a curation made for a turn, and the sources that it searches."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future, wait

from langchain_core.runnables import Runnable

from topicloom.domain import Domain
from topicloom.domain.curation import Curation, scale_weights
from topicloom.domain.curator import CurationOrigin, CurationRequest, Curator
from topicloom.domain.document import Document, digest_json, list_events
from topicloom.domain.lore import LoreIndex, LoreSource
from topicloom.domain.plan import TurnPlan
from topicloom.domain.selector import SelectRequest
from topicloom.domain.sources import (
    ApplicationSource,
    CandidateSource,
    EventSource,
    NarrativeSource,
)
from topicloom.domain.state import DomainState
from topicloom.effects import Step, either
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Node, Update, dumped, open_turn
from topicloom.search.words import words_of
from topicloom.state.recall import select_notes
from topicloom.state.session import Session
from topicloom.state.topics import TopicTable

_TAIL = 6
"""Messages before the new one that a selector sees."""


def curate(
    deps: Deps, curator: Curator, lore: LoreIndex | None, domain: Domain
) -> Runnable[DomainState, Update]:
    """The node that has a curation made, and gives what there is of it by the deadline."""

    def step(state: DomainState) -> Step[Update]:
        plan = TurnPlan.model_validate(state.get("plan") or {})
        if not plan.search.enabled:
            return {}
        began = time.monotonic()
        request = _build_request(deps, state, plan, lore, domain)
        future = curator.begin(request)
        if future is not None:
            left = max(0.0, began + domain.deadline - time.monotonic())
            yield from either(lambda: wait([future], left), lambda: _wait_for(future, left))
        session, _, workspace = open_turn(deps.workspaces, state)
        refs = workspace.store.transcript_refs(session)
        made, calls = curator.collect(request, future, refs, time.monotonic() - began)
        layers = {"layers": dumped([made.layer])} if made.layer else {}
        return {"calls": dumped(calls), **layers}

    return Node(step, "curate")


async def _wait_for(future: Future[Curation], seconds: float) -> None:
    """Wait for a while, on the event loop. The work itself goes on whatever happens here."""
    waiting = asyncio.wrap_future(future)
    try:
        await asyncio.wait([waiting], timeout=seconds)
    finally:
        if not waiting.cancel():
            waiting.exception()  # looked at, or asyncio complains of it


def _build_request(
    deps: Deps, state: DomainState, plan: TurnPlan, lore: LoreIndex | None, domain: Domain
) -> CurationRequest:
    session, turn, workspace = open_turn(deps.workspaces, state)
    store, document = workspace.store, state.get("document") or {}
    notes = select_notes(store.notes(session), turn.user, deps.settings.layout)
    terms = words_of(" ".join(plan.search.keywords) or turn.query)
    origin = CurationOrigin(
        session=session.id,
        turn=session.turn + 1,
        head=session.transcript,
        removals=(store.log.purges, session.superseded),
        basis=f"{digest_json(plan.model_dump(mode='json'))}{digest_json(document)}",
        focus=plan.focus,
        # A single CJK character says nothing: it stands in words of all kinds.
        terms=frozenset(t for t in terms if len(t) > 1),
    )
    question = SelectRequest(
        session=session.id,
        query=turn.query,
        tail=store.messages(session, turn.first - _TAIL, turn.first - 1),
        plan=plan,
        candidates=(),
        limit=domain.picks,
        language=session.language,
        kinds={source.kind: source.purpose for source in domain.sources},
    )
    knowledge = {source.kind: source.knowledge for source in domain.sources}
    return CurationRequest(
        origin=origin,
        question=question,
        sources=make_sources(
            session, store.topic_table(session), document, plan.focus, lore, domain
        ),
        weights=scale_weights(plan.search, knowledge),
        limit=domain.candidates,
        seen=tuple(entry for note in notes for entry in note.curated),
    )


def make_sources(
    session: Session,
    table: TopicTable,
    document: Document,
    focus: str | None,
    lore: LoreIndex | None,
    domain: Domain,
) -> dict[str, CandidateSource]:
    """All sources of a turn, by kind; topics that are read in this turn are none of them."""
    dormant = [t for t in table.open() if t.id not in session.active]
    sources: dict[str, CandidateSource] = {
        "narrative": NarrativeSource([*dormant, *table.archived()]),
        "event": EventSource(list_events(document, domain.events), focus),
        **{source.kind: ApplicationSource(source, session) for source in domain.sources},
    }
    return sources if lore is None else {**sources, "lore": LoreSource(lore)}
