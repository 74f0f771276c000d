"""split: move the older tail into topics, whole rounds at a time."""

from __future__ import annotations

from operator import attrgetter

from cachetools import cached
from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.nodes.deps import Deps
from topicloom.nodes.facts import choose_facts
from topicloom.nodes.putting_right import put_right
from topicloom.nodes.runs import current_run
from topicloom.nodes.step import Update, dump, emit, node, open_turn
from topicloom.roles.briefing import write_briefs
from topicloom.roles.dividing import divide_large
from topicloom.roles.sorting import sort_tail
from topicloom.roles.split_work import SplitWork
from topicloom.roles.splitter import SPLITTER
from topicloom.state.channels import SessionState
from topicloom.topics.split_draft import SplitDraft


def split(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that assigns rounds to topics and writes the briefs of what it touched."""
    settings, roles = deps.settings, deps.roles

    def step(state: SessionState) -> Step[Update]:
        session, turn, workspace = open_turn(deps.workspaces, state)
        plan, rooms = turn.plan, deps.rooms
        assert plan is not None  # the wiring comes here only with a plan
        # To measure a very long round takes time.
        measure = cached({}, attrgetter("first", "last"))(rooms.reader.measure)
        draft = SplitDraft(workspace.store, session, measure, rooms.topic)
        rounds = draft.read_tail(plan.tail - 1)
        emit("split", rounds=len(rounds), first=session.tail, last=plan.tail - 1)
        work = SplitWork(draft, roles, rooms, deps.adsorber, deps.embedder, deps.waits)
        yield from sort_tail(work, rounds, workspace.indexed, settings.index_topics)
        if roles.by_index(SPLITTER):
            turn = put_right(draft, workspace, turn, plan.tail, deps.embedder)
        divided = yield from divide_large(work)
        yield from write_briefs(work, workspace.late_briefs)
        change, done = draft.close(rounds, plan, settings.activation, settings.language)
        session = draft.session
        if not current_run().fork:  # a fork shows what was known at its checkpoint until now
            session = session.model_copy(update={"facts_at": ""})
        session = choose_facts(deps, workspace, session)
        turn = turn.model_copy(
            update={
                "activated": change.activated,
                "deactivated": change.deactivated,
                "split": draft.select_open(draft.touched),
                "events": (*turn.events, done, *divided),
            }
        )
        return dump(session, turn, calls=work.calls)

    return node(step, "split")
