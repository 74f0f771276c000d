"""reconcile: settle what others left, before a turn takes anything in.

| what was left | what becomes of it |
|---|---|
| messages that the application changed or removed in the channel | an edit of the conversation |
| turns of another writer that ended since this checkpoint | they come first |
| a fork, where a checkpoint is named | it knows the facts of that time |
| texts in the channel that were purged | the channel is written anew |
| messages, readings and calls of a turn that failed | it is repeated, or only closed |

In the usual turn there is none of this, and the node writes nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from topicloom.effects import Step
from topicloom.errors import TopicLoomWarning
from topicloom.nodes.catch_up import Replay, report_taken, show_newest, take_edits
from topicloom.nodes.deps import Deps
from topicloom.nodes.runs import current_run
from topicloom.nodes.step import (
    Update,
    dump,
    dumped,
    node,
    open_session,
    read_unfinished,
    turn_options,
)
from topicloom.roles.brief import BRIEF, BriefRequest
from topicloom.roles.calls import ask_first
from topicloom.state.channels import SessionState
from topicloom.state.identity import select_unstored
from topicloom.state.persons import claim_session, find_person
from topicloom.state.receipt import Call
from topicloom.state.session import Session, Turn
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore
from topicloom.storage.superseding import list_nameless
from topicloom.storage.writers import read_tips, resume
from topicloom.texts import FilledText


def reconcile(deps: Deps, replay: Replay | None = None) -> Runnable[SessionState, Update]:
    """The node that settles what others left; `replay` makes their edits of a document."""

    def step(state: SessionState) -> Step[Update]:
        known, workspace = open_session(deps.workspaces, state)
        given, options = state.get("messages", []), turn_options()
        store, begun = workspace.store, read_unfinished(state, known)
        deps.waits.of(known.id).begin(waited=options.answer)
        edited, messages, edits = take_edits(
            deps,
            workspace,
            _date_fork(known, state),
            given,
            answer=options.answer,
            cleared=current_run().cleared,
        )
        session, events, update = _come_behind(store, edited, state, replay)
        unfinished = read_unfinished(state, session)
        if unfinished and _lacks_its_end(unfinished, messages) and not edits:
            return dump(turn=unfinished.model_copy(update={"answer": False}))
        if purged := store.log.purges != known.purges:
            # A title may tell what was purged.
            session = session.model_copy(update={"purges": store.log.purges, "titles": {}})
        failed = bool(begun and begun.first)
        rewritten = bool(events or edits or failed or purged or messages is not given)
        if session == known and not rewritten:
            return {}
        calls = list[Call]()
        if edits:
            session = yield from _name_topics(deps, store, session, calls)
        if rewritten:
            # The channel is as old as the session that the checkpoint holds.
            stored = workspace.recent(session, messages, session.count - known.count)
            if events:  # what another writer took out of view is not new
                stored = [*workspace.recent(edited, messages), *stored]
            shown = show_newest(store, session, deps.settings.visible_messages)
            update["messages"] = Overwrite([*shown, *select_unstored(messages, stored)])
            session = workspace.mark_shown(session, shown)
        before = begun.events if begun and not failed else ()
        turn = Turn(
            number=session.turn + 1,
            silent=bool(edits or failed or events),
            events=(*before, *edits, *events),
        )
        anew = {"readings": None, "calls": Overwrite(dumped(calls))}
        return {**dump(session, turn), **anew, **update}

    return node(step, "reconcile")


def _lacks_its_end(begun: Turn, messages: Sequence[AnyMessage]) -> bool:
    """True if a turn failed behind its reply and is sent again: it only has to be closed."""
    last = messages[-1] if messages else None
    return bool(begun.first) and isinstance(last, AIMessage) and not last.tool_calls


def _date_fork(session: Session, state: SessionState) -> Session:
    """The session; where a fork begins with this run, with the time of the checkpoint."""
    before = state.get("session") or {}
    if not (before and session.user_id and session.branch != Session.model_validate(before).branch):
        return session
    return session.model_copy(update={"facts_at": (state.get("turn") or {}).get("started", "")})


def _come_behind(
    store: SessionStore, session: Session, state: SessionState, replay: Replay | None
) -> tuple[Session, tuple[str, ...], Update]:
    """The session behind what other writers did since its checkpoint.

    Also returns what they did, in words for the receipt, and the update of the document by that.
    """
    tips, run = read_tips(store), current_run()
    if (owner := find_person(tip.session for tip in tips)) is not None:
        session = claim_session(session, owner)
    session, taken, lost = resume(store, session, run.thread, run.began, tips)
    if not lost:
        return session, *report_taken(taken, state.get("document"), replay)
    warnings.warn(
        FilledText(
            "session {session!r} begins anew: its checkpointer knows nothing of the {lost}"
            " messages that are stored of it. One that outlives the program is"
            " local_checkpointer()",
            session=session.id,
            lost=lost,
        ),
        TopicLoomWarning,
        stacklevel=2,
    )
    return session, (f"begun anew: an earlier conversation of {lost} messages stays stored",), {}


def _name_topics(
    deps: Deps, store: SessionStore, session: Session, calls: list[Call]
) -> Step[Session]:
    """The session, whose topics have names and briefs again that were made of what is gone."""
    named, waits = list[Topic](), deps.waits.of(session.id)
    for topic in list_nameless(store, session):
        messages = store.topic_messages(session, topic)
        request = BriefRequest(session.id, topic, messages, session.language)
        writers = deps.roles.in_turn(BRIEF)
        brief = yield from ask_first("brief", writers, request, calls, topic.id, waits=waits)
        if brief is not None:
            named.append(topic.described(brief.name, brief.text))
    return store.save_topics(session, named)
