"""ingest: number the new messages, keep them, and see what they mean for the topics."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from topicloom.boundary.adsorber import LOOK_BACK, Adsorber
from topicloom.effects import Step
from topicloom.nodes.catch_up import Replay, catch_up, show_newest, take_edits
from topicloom.nodes.deps import Deps
from topicloom.nodes.runs import current_run
from topicloom.nodes.step import (
    Update,
    current_session,
    dump,
    dumped,
    node,
    open_workspace,
    turn_options,
)
from topicloom.roles.brief import BRIEF, BriefRequest
from topicloom.roles.calls import ask_first, ask_role
from topicloom.roles.rewriter import REWRITER, RewriteRequest
from topicloom.state.channels import SessionState
from topicloom.state.messages import detect_language, find_new_messages, select_unstored
from topicloom.state.receipt import Call
from topicloom.state.rounds import group_rounds
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import StoredMessage, get_text, to_stored_message
from topicloom.state.superseding import find_shown
from topicloom.state.topics import Topic
from topicloom.storage.lines import find_rivals, publish
from topicloom.storage.sessions import SessionStore
from topicloom.storage.superseding import list_nameless


def ingest(deps: Deps, replay: Replay | None = None) -> Runnable[SessionState, Update]:
    """The node that takes in what is new; `replay` makes other writers' edits of a document."""
    rewriter = deps.roles.get(REWRITER)

    def step(state: SessionState) -> Step[Update]:
        known = current_session(state)
        workspace = open_workspace(deps.workspaces, known)
        options = turn_options()
        given, cleared = state.get("messages", []), current_run().cleared
        edited, messages, edits = take_edits(
            deps, workspace, known, given, answer=options.answer, cleared=cleared
        )
        session, events, changed = _begin(workspace.store, edited, state, replay)
        # The channel is as old as the session that the checkpoint holds.
        recent = workspace.recent(session, messages, session.count - known.count)
        # What another writer took out of view is none of what is new.
        before = workspace.recent(edited, messages) if events else []
        if events or edits or [m.id for m in messages] != [m.id for m in given]:
            unstored = select_unstored(messages, [*before, *recent])
            keep = deps.settings.visible_messages
            shown = show_newest(workspace.store, session, keep)
            changed["messages"] = Overwrite([*shown, *unstored])
            session = session.model_copy(update={"shown": find_shown(shown, recent)})
        events = (*edits, *events)
        begun = Turn.model_validate(state["turn"]) if state.get("turn") else None
        failed = begun is not None and begun.number > session.turn
        last = messages[-1] if messages else None
        if begun and failed and not edits and isinstance(last, AIMessage) and not last.tool_calls:
            # It failed at its end and is sent again: all that is left is to close it.
            return dump(turn=begun.model_copy(update={"answer": False}))
        # A turn that brings changes to the topics of a conversation need not bring a message, nor
        # does one that was killed at its very end and is sent again: it is part of what came first.
        silent = bool(edits or ((options.changes or failed or events) and recent))
        fresh = find_new_messages(
            messages, [*before, *recent], answer=options.answer, silent=silent
        )
        if session.turn == 0:
            spoken = deps.language or detect_language([get_text(m) for m in messages])
            session = session.model_copy(update={"language": spoken})
        newest = (fresh or [m.message for m in recent[-1:]] or [AIMessage("")])[-1]
        answer = isinstance(newest, HumanMessage) and options.answer
        query, calls = get_text(newest), list[Call]()
        if edits:
            session = yield from _name_topics(deps, workspace.store, session, calls)
        if answer and rewriter is not None and session.topics:
            request = RewriteRequest(session.id, query, recent, session.language)
            rewritten, call = yield from ask_role("rewriter", rewriter, request)
            query = rewritten or query
            calls.append(call)
        now = deps.clock().isoformat(timespec="seconds")
        said = [
            to_stored_message(m, seq=n, time=now) for n, m in enumerate(fresh, session.count + 1)
        ]
        if answer and said and query != said[-1].text:
            said[-1] = said[-1].model_copy(update={"query": query})
        # No model is asked here, where the user waits: an arbiter is when the tail is split.
        stored = _mark_beginnings(said, recent, deps.adsorber)
        session = workspace.store.append(session, stored)
        stored = stored or list(recent[-1:])
        turn = Turn(
            number=session.turn + 1,
            first=stored[0].seq if stored else session.count,
            user=stored[-1].seq if stored else session.count,
            query=query,
            answer=answer,
            said=bool(fresh),
            amnesia=answer and deps.amnesia.found_in(stored[-1].text),
            started=deps.clock().isoformat(),
            events=events,
        )
        update = {**dump(session, turn), "readings": None, "calls": None, **changed}
        return update | ({"calls": dumped(calls)} if calls else {})

    return node(step, "ingest")


def _name_topics(
    deps: Deps, store: SessionStore, session: Session, calls: list[Call]
) -> Step[Session]:
    """The session, whose topics have names and briefs again that were made of what is gone."""
    named = list[Topic]()
    for topic in list_nameless(store, session):
        messages = store.topic_messages(topic)
        request = BriefRequest(session.id, topic, messages, session.language)
        writers = deps.roles.in_turn(BRIEF)
        brief = yield from ask_first("brief", writers, request, calls, topic.id)
        if brief is not None:
            update = {"name": brief.name or topic.name, "brief": brief.text}
            named.append(topic.model_copy(update=update))
    return store.save_topics(session, named)


def _begin(
    store: SessionStore, session: Session, state: SessionState, replay: Replay | None
) -> tuple[Session, tuple[str, ...], Update]:
    """The session to go on with: that of the checkpoint, behind what others did since."""
    rivals = find_rivals(store, session)
    old = [r for r in rivals if not session.count and r.time < current_run().began]
    if not old:
        return catch_up(store, session, rivals, state, replay)
    # No checkpoint leads there any more: the thread was deleted, or its checkpointer was changed.
    publish(store, session, [head.ref for head in old])
    most = max(head.session.count for head in old)
    return session, (f"begun anew: an earlier conversation of {most} messages stays stored",), {}


def _mark_beginnings(
    said: Sequence[StoredMessage], recent: Sequence[StoredMessage], adsorber: Adsorber
) -> list[StoredMessage]:
    """New messages, those marked at which the adsorber sees a topic begin."""
    marked: list[StoredMessage] = []
    for message in said:
        if message.role == "user":
            verdict = adsorber.judge(group_rounds([*recent, *marked][-LOOK_BACK:]), message)
            message = message.model_copy(update={"opens": verdict.opens})
        marked.append(message)
    return marked
