"""split: move the older tail into topics, whole rounds at a time."""

from __future__ import annotations

from operator import attrgetter

from cachetools import cached
from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.nodes.deps import Deps
from topicloom.nodes.facts import refresh_facts
from topicloom.nodes.regrouping import SPLIT_REGROUPINGS, find_regroupings
from topicloom.nodes.runs import current_run
from topicloom.nodes.step import Node, Update, dump, emit, open_turn
from topicloom.nodes.workspace import Workspace
from topicloom.roles.briefing import write_briefs
from topicloom.roles.dividing import divide_large
from topicloom.roles.sorting import sort_tail
from topicloom.roles.split_work import SplitWork
from topicloom.roles.splitter import SPLITTER
from topicloom.search.embedder import Embedder
from topicloom.state.channels import SessionState
from topicloom.state.lifecycle import find_survivor
from topicloom.state.session import Turn
from topicloom.storage.topic_changes import make_changes
from topicloom.topics.split_draft import SplitDraft

_YOUNG, _DUE = 256, 32
"""Messages up to which each split looks for what is filed wrong, and after how many more it does so
again: in a small window each turn splits, and to look through a long conversation takes time."""


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
            turn = _put_right(draft, workspace, turn, plan.tail, deps.embedder)
        divided = yield from divide_large(work)
        yield from write_briefs(work, workspace.late_briefs)
        change, done = draft.close(rounds, plan, settings.activation, settings.language)
        session = draft.session
        if not current_run().fork:  # a fork shows what was known at its checkpoint until now
            session = session.model_copy(update={"facts_at": ""})
        session = refresh_facts(deps, workspace, session)
        turn = turn.model_copy(
            update={
                "activated": change.activated,
                "deactivated": change.deactivated,
                "split": draft.select_open(draft.touched),
                "events": (*turn.events, done, *divided),
            }
        )
        return dump(session, turn, calls=work.calls)

    return Node(step, "split")


def _put_right(
    draft: SplitDraft, workspace: Workspace, turn: Turn, tail: int, embedder: Embedder
) -> Turn:
    """Make the changes that the topics of a split up to `tail`, and those near them, need.

    The rows of topics that the split touched are written; the draft goes on from what the changes
    made of them.
    """
    store = draft.store
    due = tail <= _YOUNG or tail // _DUE > draft.session.tail // _DUE
    if not (due and draft.touched):
        return turn
    table = store.topic_table(draft.save())
    changes = find_regroupings(
        workspace, draft.session, draft.touched, embedder, draft.limit, SPLIT_REGROUPINGS
    )
    if not changes:
        return turn
    draft.session, turn = make_changes(store, draft.session, turn, changes)
    after = store.topic_table(draft.session)
    for topic in after:
        if table.get(topic.id) != topic:
            draft.adjusted.pop(topic.id, None)
            draft.touched.pop(topic.id, None)
            if topic.status == "open":
                draft.touched[topic.id] = topic
    for topic_id in list(draft.moved):
        heir = find_survivor(after[topic_id], after.topics)
        if heir != topic_id:
            draft.moved.setdefault(heir, []).extend(draft.moved.pop(topic_id))
    return turn
