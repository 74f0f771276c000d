"""The node that has a curation made for a turn, and the sources that it searches."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future, wait

from langchain_core.runnables import Runnable

from topicloom.domain.curation import (
    ConversationPosition,
    CurationResult,
    TurnInterest,
    build_curated_layer,
)
from topicloom.domain.curator import CurationRequest, Curator
from topicloom.domain.document import digest_json, list_events
from topicloom.domain.lore import LoreIndex, LoreSource
from topicloom.domain.sources import (
    CandidateSource,
    EventSource,
    NarrativeSource,
    TopicSource,
)
from topicloom.effects import Step, either
from topicloom.index.words import words_of
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update, dumped, node, open_turn
from topicloom.state.channels import DomainState
from topicloom.state.recall import SourceKind
from topicloom.state.session import TurnPlan

_TAIL = 6
"""Messages before the new one that a selector sees."""


def curate(
    deps: Deps, curator: Curator, lore: LoreIndex | None, events: str
) -> Runnable[DomainState, Update]:
    """The node that has a curation made, and gives what there is of it by the deadline."""

    def step(state: DomainState) -> Step[Update]:
        plan = TurnPlan.model_validate(state.get("plan") or {})
        if not plan.search.enabled:
            return {}
        began = time.monotonic()
        request = _build_request(deps, state, plan, lore, events)
        future = curator.begin(request)
        if future is not None:
            left = max(0.0, began + curator.policy.deadline - time.monotonic())
            yield from either(lambda: wait([future], left), lambda: _wait_for(future, left))
        session, _, workspace = open_turn(deps.workspaces, state)
        refs = workspace.store.transcript_refs(session)
        made, calls = curator.collect(request, future, refs, time.monotonic() - began)
        layer = build_curated_layer(made)
        update: Update = {"calls": dumped(calls)}
        if layer is not None:
            update["layers"] = [layer.model_dump(mode="json", exclude_defaults=True)]
        return update

    return node(step, "curate")


async def _wait_for(future: Future[CurationResult], seconds: float) -> None:
    """Wait for a while, on the event loop. The work itself goes on whatever happens here."""
    waiting = asyncio.wrap_future(future)
    try:
        await asyncio.wait([waiting], timeout=seconds)
    finally:
        if not waiting.cancel():
            waiting.exception()  # looked at, or asyncio complains of it


def _build_request(
    deps: Deps, state: DomainState, plan: TurnPlan, lore: LoreIndex | None, events: str
) -> CurationRequest:
    """The request of a turn; topics that are read in this turn are no sources of it."""
    session, turn, workspace = open_turn(deps.workspaces, state)
    store, document = workspace.store, state.get("document") or {}
    notes = deps.window.layout.select_shown(store.notes(session), turn.user)
    shown = {i for note in notes for topic in note.topics for i in topic.quotes}
    shown |= {f"m{n}" for n in range(session.view, session.count + 1)}
    table = store.topic_table(session)
    dormant = [t for t in table.open() if t.id not in session.active]
    sources: dict[SourceKind, CandidateSource] = {
        "narrative": NarrativeSource([*dormant, *table.archived()]),
        "event": EventSource(list_events(document, events), plan.focus),
        "topic": TopicSource(dormant, workspace.index.search, store.topic_messages, shown),
    }
    if lore is not None:
        sources["lore"] = LoreSource(lore)
    terms = words_of(" ".join(plan.search.keywords) or turn.query)
    return CurationRequest(
        session=session.id,
        turn=session.turn + 1,
        position=ConversationPosition(
            session.count, session.transcript, (store.log.purges, session.superseded)
        ),
        basis=f"{digest_json(plan.model_dump(mode='json'))}{digest_json(document)}",
        # A single CJK character says nothing: it stands in words of all kinds.
        interest=TurnInterest(plan.focus, frozenset(t for t in terms if len(t) > 1)),
        query=turn.query,
        tail=store.messages(session, turn.first - _TAIL, turn.first - 1),
        plan=plan,
        language=session.language,
        sources=sources,
        seen=tuple(e for note in notes for layer in note.layers for e in layer.entries),
    )
