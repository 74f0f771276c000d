"""ingest: number the new messages, keep them, and see what they mean for the topics."""

from __future__ import annotations

from functools import partial

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.nodes.deps import Deps
from topicloom.nodes.facts import refresh_facts
from topicloom.nodes.rewriting import rewrite_query
from topicloom.nodes.step import (
    Node,
    Update,
    dump,
    open_current,
    place_user,
    read_unfinished,
    turn_options,
)
from topicloom.state.channels import SessionState
from topicloom.state.opening import begin_turn, take_in
from topicloom.state.receipt import Call
from topicloom.state.session import Turn


def ingest(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that takes in what is new."""

    def step(state: SessionState) -> Step[Update]:
        session, workspace = open_current(deps.workspaces, state)
        begun = read_unfinished(state, session) or Turn()
        if begun.first:
            return {}  # it failed at its very end, and is only to be closed
        session, store = place_user(session, workspace), workspace.store
        channel, now, calls = state.get("messages", []), session.place(deps.clock()), list[Call]()
        recent = workspace.recent(session, channel)
        session, arrival = take_in(
            session, begun, channel, recent, turn_options(), deps.settings.language, now
        )
        # If the turn is planned first, the plan may say that no search is needed.
        if arrival.asks_anew and deps.window.edit is None:
            query = yield from rewrite_query(deps, session, arrival.query, recent, calls)
            arrival = arrival.rewrite(query)
        # The user waits here. An arbiter is asked about beginnings when the tail is split.
        find_return = partial(workspace.find_return, session) if arrival.answer else None
        stored, verdict = deps.adsorber.mark_beginnings(arrival.messages, recent, find_return)
        known = store.topic_table(session).topics
        turn = begin_turn(
            session,
            arrival,
            [*recent, *stored],
            now,
            continues=verdict.continues,
            forgot=deps.amnesia.found_in(arrival.sought),
            returns=known.get(verdict.returns or ""),
            events=begun.events,
        )
        session = store.append(session, stored)
        if session.user_id and not session.facts_chosen:
            session = refresh_facts(deps, workspace, session)
        return dump(session, turn, calls=calls)

    return Node(step, "ingest")
