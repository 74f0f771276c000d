"""curate: what else is worth knowing, found beside the turn and not waited for too long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass

from langchain_core.runnables import Runnable

from topicloom.context.window import MainWindow
from topicloom.domain.curation import ConversationPosition, TurnInterest, build_curated_layer
from topicloom.domain.curator import CurationOutcome, CurationRequest, Curator
from topicloom.domain.document import Document, digest_json
from topicloom.domain.events import EventSource, list_events
from topicloom.domain.lore import LoreIndex, LoreSource
from topicloom.domain.sources import CandidateSource, NarrativeSource, TopicSource
from topicloom.effects import Step, either
from topicloom.index.words import words_of
from topicloom.nodes.step import Update, current_session, current_turn, dumped, node, open_workspace
from topicloom.nodes.workspace import Workspace, Workspaces
from topicloom.state.channels import DomainState
from topicloom.state.layers import SourceKind
from topicloom.state.plan import TurnPlan
from topicloom.state.recall import Note
from topicloom.state.session import Session, Turn

_TAIL = 6
"""Messages before the new one that a selector sees."""


def curate(
    *,
    workspaces: Workspaces,
    window: MainWindow,
    curator: Curator,
    lore: LoreIndex | None,
    events: str,
) -> Runnable[DomainState, Update]:
    """The node that has a curation made, and hands in what there is of it by the deadline.

    Args:
        workspaces: Of this process.
        window: Says what the prompt shows already.
        curator: Runs curations.
        lore: The application's documents, if it has any.
        events: The document's field that lists its events.
    """
    desk = _CurationRequestBuilder(workspaces, window, lore, events)
    deadline = curator.policy.deadline

    def step(state: DomainState) -> Step[Update]:
        if not TurnPlan.model_validate(state.get("plan") or {}).search.enabled:
            return {}
        began = time.monotonic()
        work, refs = desk.work(state)
        future = curator.begin(work)
        if future is not None:
            yield from _until(future, began + deadline)
        made, calls = curator.collect(work, future, refs, time.monotonic() - began)
        layer = build_curated_layer(made)
        update: Update = {"calls": dumped(calls)}
        if layer is not None:
            update["layers"] = [layer.model_dump(mode="json", exclude_defaults=True)]
        return update

    return node(step, "curate")


def _until(future: Future[CurationOutcome], deadline: float) -> Step[object]:
    """Wait for a curation, until a time of the monotonic clock at most."""
    left = max(0.0, deadline - time.monotonic())
    return either(lambda: wait([future], left), lambda: _wait_for(future, left))


async def _wait_for(future: Future[CurationOutcome], seconds: float) -> None:
    """Wait for a while, on the event loop. The work itself goes on whatever happens here."""
    waiting = asyncio.wrap_future(future)
    try:
        await asyncio.wait([waiting], timeout=seconds)
    finally:
        if not waiting.cancel():
            waiting.exception()  # looked at, or asyncio complains of it


@dataclass(frozen=True, slots=True)
class _CurationRequestBuilder:
    """Says what a turn wants looked for, and where."""

    workspaces: Workspaces
    window: MainWindow
    lore: LoreIndex | None
    events: str

    def work(self, state: DomainState) -> tuple[CurationRequest, Sequence[str]]:
        """What to look for, and the refs of the conversation."""
        session, turn = current_session(state), current_turn(state)
        workspace = open_workspace(self.workspaces, session)
        plan = TurnPlan.model_validate(state["plan"])
        document = state.get("document") or {}
        notes = self._shown(workspace, session, turn)
        terms = words_of(" ".join(plan.search.keywords) or turn.query)
        work = CurationRequest(
            session=session.id,
            turn=session.turn + 1,
            place=ConversationPosition(session.count, session.transcript),
            basis=f"{digest_json(plan.model_dump(mode='json'))}{digest_json(document)}",
            # A single CJK character says nothing: it stands in words of all kinds.
            interest=TurnInterest(plan.focus, frozenset(t for t in terms if len(t) > 1)),
            query=turn.query,
            tail=workspace.store.records(session, turn.first - _TAIL, turn.first - 1),
            plan=plan,
            language=session.language,
            sources=self._sources(document, workspace, session, plan, notes),
            seen=tuple(e for note in notes for layer in note.layers for e in layer.entries),
        )
        return work, workspace.store.transcript_refs(session)

    def _shown(self, workspace: Workspace, session: Session, turn: Turn) -> list[Note]:
        """The notes that the prompt of this turn shows."""
        notes = workspace.store.notes(session)
        if self.window.layout.order == "spec":
            return [n for n in notes if n.after == turn.user]
        return notes

    def _sources(
        self,
        document: Document,
        workspace: Workspace,
        session: Session,
        plan: TurnPlan,
        notes: Sequence[Note],
    ) -> dict[SourceKind, CandidateSource]:
        """Where to look. What readers read in this turn is left to them."""
        table = workspace.store.topic_table(session)
        asleep = [t for t in table.open() if t.id not in session.active]
        shown = {i for note in notes for topic in note.topics for i in topic.quotes}
        shown |= {f"m{n}" for n in range(session.view, session.count + 1)}
        records = workspace.store.topic_records
        sources: dict[SourceKind, CandidateSource] = {
            "narrative": NarrativeSource([*asleep, *table.archived()]),
            "event": EventSource(list_events(document, self.events), plan.focus),
            "topic": TopicSource(asleep, workspace.index.search, records, shown),
        }
        return sources | ({"lore": LoreSource(self.lore)} if self.lore is not None else {})
