"""ingest: number the new messages, keep them, and see what they mean for the topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
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
from topicloom.nodes.workspace import Workspace
from topicloom.state.channels import SessionState
from topicloom.state.chats import list_titles, mark_chats
from topicloom.state.identity import find_new_messages, mark_seen
from topicloom.state.language import choose_language
from topicloom.state.receipt import Call
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import StoredMessage, get_text, number_messages
from topicloom.topics.adsorber import LOOK_BACK


def ingest(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that takes in what is new."""

    def step(state: SessionState) -> Step[Update]:
        session, workspace = open_current(deps.workspaces, state)
        begun = read_unfinished(state, session) or Turn()
        if begun.first:
            return {}  # it failed at its very end, and is only to be closed
        session = place_user(session, workspace)
        options, messages = turn_options(), state.get("messages", [])
        recent = workspace.recent(session, messages)
        silent = begun.silent or bool(options.changes_topics and recent)
        fresh = find_new_messages(messages, recent, answer=options.answer, silent=silent)
        if session.turn == 0:
            spoken = choose_language(deps.settings.language, [get_text(m) for m in messages])
            session = session.model_copy(update={"language": spoken})
        if not recent:  # the channel shows all that there is
            session = session.model_copy(update={"shown": 1})
        calls = list[Call]()
        request = yield from _read_request(deps, session, recent, fresh, calls)
        session, turn = _begin_turn(deps, session, workspace, recent, request)
        events = (*begun.events, *turn.events)
        turn = turn.model_copy(update={"events": events, "compared": mark_seen(messages)})
        if session.user_id and not session.facts_chosen:
            session = refresh_facts(deps, workspace, session)
        return dump(session, turn, calls=calls)

    return Node(step, "ingest")


@dataclass(frozen=True, slots=True)
class _Request:
    """The new messages of a turn, and what is wanted."""

    messages: Sequence[StoredMessage]
    """The new messages, numbered; not stored yet."""
    asked: StoredMessage | None
    """The newest message of the user, new or not."""
    query: str
    """What is searched for."""
    answer: bool
    """True if a reply is due."""
    forgot: bool
    """True if the newest message says that something was forgotten."""


def _read_request(
    deps: Deps,
    session: Session,
    recent: Sequence[StoredMessage],
    fresh: Sequence[AnyMessage],
    calls: list[Call],
) -> Step[_Request]:
    """Number the new messages, find out what is asked, and have the query rewritten."""
    options = turn_options()
    now = deps.now(session).isoformat(timespec="seconds")
    messages = number_messages(fresh, session.count + 1, now)
    talk = [*recent, *messages]
    asked = next((m for m in reversed(talk) if m.role == "user"), None)
    newest = talk[-1] if talk else None
    said = newest.message if newest else None
    # The result of a tool is answered too: of a caller's own tool, or of another agent's.
    due = isinstance(said, HumanMessage) or (isinstance(said, ToolMessage) and asked)
    answer = bool(due) and options.answer
    sought = newest.as_query if newest else ""
    query = asked.as_query if answer and asked else sought
    forgot = deps.amnesia.found_in(sought)
    # If the turn is planned first, the plan may say that no search is needed.
    planned = deps.window.edit is not None
    if answer and not planned and (asked in messages or not messages):
        plain = query
        query = yield from rewrite_query(deps, session, query, recent, calls)
        if asked and query != plain:
            rewritten = asked.model_copy(update={"query": query})
            messages = [rewritten if m is asked else m for m in messages]
    return _Request(messages, asked, query, answer, forgot)


def _begin_turn(
    deps: Deps,
    session: Session,
    workspace: Workspace,
    recent: Sequence[StoredMessage],
    request: _Request,
) -> tuple[Session, Turn]:
    chats, asked, answer = turn_options().chats, request.asked, request.answer
    messages = mark_chats(request.messages, chats)
    table = workspace.store.topic_table(session)

    # The user waits here, so no arbiter is asked about beginnings: it is when the tail is split.
    stored, verdict = deps.adsorber.mark_beginnings(
        messages, recent, partial(workspace.find_return, session) if answer else None
    )
    back = verdict.returns
    talk = [*recent, *stored]
    titles = session.titles | list_titles(stored, chats)
    session = workspace.store.append(session.model_copy(update={"titles": titles}), stored)
    stored = stored or list(recent[-1:])
    first = stored[0].seq if stored else session.count
    user = asked.seq if answer and asked else stored[-1].seq if stored else session.count
    turn = Turn(
        number=session.turn + 1,
        first=first,
        user=user,
        query=request.query,
        answer=answer,
        said=bool(request.messages),
        amnesia=answer and user >= first and request.forgot,
        since=_find_beginning(talk, user),
        continues=round(verdict.continues, 4) if user >= first else 0.0,
        started=deps.now(session).isoformat(),
        events=(f"returns to {back} “{table[back].name}”",) if back else (),
    )
    return session, turn


def _find_beginning(spoken: Sequence[StoredMessage], user: int) -> int:
    """Number of the message with which the talk before a message began; 0 if there is none."""
    before = [m for m in spoken if m.seq < user][-LOOK_BACK:]
    opening = (m.seq for m in reversed(before) if m.opens)
    return next(opening, before[0].seq if before else 0)
