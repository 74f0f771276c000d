"""ingest: number the new messages, keep them, and see what they mean for the topics."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from topicloom.effects import Step
from topicloom.errors import TopicLoomWarning
from topicloom.nodes.catch_up import Replay, report_taken, show_newest, take_edits
from topicloom.nodes.deps import Deps
from topicloom.nodes.facts import choose_facts
from topicloom.nodes.rewriting import rewrite_query
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
from topicloom.nodes.workspace import Workspace
from topicloom.roles.brief import BRIEF, BriefRequest
from topicloom.roles.calls import ask_first
from topicloom.state.channels import SessionState
from topicloom.state.chats import list_titles, mark_chats
from topicloom.state.identity import find_new_messages, select_unstored
from topicloom.state.language import detect_language
from topicloom.state.message_form import select_usable
from topicloom.state.persons import claim_session, find_person
from topicloom.state.receipt import Call
from topicloom.state.rounds import group_rounds
from topicloom.state.safe_text import shorten_query
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import StoredMessage, get_text, to_stored_message
from topicloom.state.superseding import find_shown
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore
from topicloom.storage.superseding import list_nameless
from topicloom.storage.writers import read_tips, resume
from topicloom.texts import FilledText
from topicloom.topics.adsorber import LOOK_BACK, Adsorber


def ingest(deps: Deps, replay: Replay | None = None) -> Runnable[SessionState, Update]:
    """The node that takes in what is new; `replay` makes other writers' edits of a document."""

    def step(state: SessionState) -> Step[Update]:
        past = _take_over(deps, state, replay)
        begun = past.find_begun(state)
        if begun is not None:
            # It failed at its end and is sent again: all that is left is to close it.
            return dump(turn=begun.model_copy(update={"answer": False}))
        session, store, options = past.session, past.workspace.store, turn_options()
        fresh = find_new_messages(
            past.messages, past.known, answer=options.answer, silent=past.may_be_silent(state)
        )
        if session.turn == 0:
            spoken = deps.language or detect_language([get_text(m) for m in past.messages])
            session = session.model_copy(update={"language": spoken})
        calls = list[Call]()
        deps.waits.of(session.id).begin(waited=options.answer)
        if past.edits:
            session = yield from _name_topics(deps, store, session, calls)
        request = yield from _read_request(deps, session, past.recent, fresh, calls)
        session, turn = _begin_turn(deps, session, past, request)
        if session.user_id and not (state.get("session") or {}).get("user_id"):
            session = choose_facts(deps, session, store.transcript_refs(session))
        # A turn that failed left its calls: those of this one stand in their place.
        begun_anew = {"readings": None, "calls": Overwrite(dumped(calls))}
        return {**dump(session, turn), **begun_anew, **past.update}

    return node(step, "ingest")


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
    newest = (fresh or [m.message for m in recent[-1:]] or [AIMessage("")])[-1]
    now = deps.clock().isoformat(timespec="seconds")
    messages = [
        to_stored_message(m, seq=n, time=now) for n, m in enumerate(fresh, session.count + 1)
    ]
    asked = next((m for m in reversed([*recent, *messages]) if m.role == "user"), None)
    # The result of a tool is answered too: of a caller's own tool, or of another agent's.
    due = isinstance(newest, HumanMessage) or (isinstance(newest, ToolMessage) and asked)
    answer = bool(due) and options.answer
    query = shorten_query(asked.text if answer and asked else get_text(newest))
    forgot = deps.amnesia.found_in(shorten_query(get_text(newest)))
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
    deps: Deps, session: Session, past: _Past, request: _Request
) -> tuple[Session, Turn]:
    """Store the new messages; returns the session with them, and the turn that they begin."""
    chats, asked, answer = turn_options().chats, request.asked, request.answer
    messages = mark_chats(request.messages, chats)
    # The user waits here, so no arbiter is asked about beginnings: it is when the tail is split.
    stored, continues = _mark_beginnings(messages, past.recent, deps.adsorber)
    talk = [*past.recent, *stored]
    titles = session.titles | list_titles(stored, chats)
    session = session.model_copy(update={"titles": titles})
    session = past.workspace.store.append(session, stored)
    stored = stored or list(past.recent[-1:])
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
        continues=continues if user >= first else 0.0,
        started=deps.clock().isoformat(),
        events=(*past.edits, *past.events, *past.left_out),
    )
    return session, turn


@dataclass(frozen=True, slots=True)
class _Past:
    """What a turn goes on from: the conversation with what others did, and the application."""

    workspace: Workspace
    session: Session
    messages: Sequence[AnyMessage]
    """The channel, without what is out of view."""
    recent: Sequence[StoredMessage]
    """The newest messages of the conversation."""
    known: Sequence[StoredMessage]
    """The same, and those that another writer took out of view: none of them is new."""
    edits: tuple[str, ...]
    """What the application edited, in words for the receipt."""
    events: tuple[str, ...]
    """What others did, likewise."""
    left_out: tuple[str, ...]
    """What an older version left in the channel that nobody can take in, likewise."""
    update: Update
    """The update of the document and of the channel by that."""

    def find_begun(self, state: SessionState) -> Turn | None:
        """The turn that failed at its very end, if this is the same sent again."""
        begun = _find_failed(state, self.session)
        last = self.messages[-1] if self.messages else None
        ended = isinstance(last, AIMessage) and not last.tool_calls
        return begun if ended and not self.edits else None

    def may_be_silent(self, state: SessionState) -> bool:
        """True if the turn need not bring a message.

        So it is with one that brings changes to topics or edits, and with one that was killed at
        its very end and is sent again: it is part of what came first.
        """
        brings = turn_options().changes_topics or _find_failed(state, self.session) or self.events
        return bool(self.edits or (brings and self.recent))


def _take_over(deps: Deps, state: SessionState, replay: Replay | None) -> _Past:
    known = _date_fork(current_session(state), state)
    workspace = open_workspace(deps.workspaces, known)
    given, cleared = state.get("messages", []), current_run().cleared
    usable, faults = select_usable(given)
    edited, messages, edits = take_edits(
        deps, workspace, known, usable, answer=turn_options().answer, cleared=cleared
    )
    session, events, update = _begin(workspace.store, edited, state, replay)
    # What was purged since that checkpoint may still stand in its channel.
    purges = workspace.store.log.purges
    purged = purges != known.purges
    titles = {} if purged else session.titles  # a title may tell what was purged
    session = session.model_copy(update={"purges": purges, "titles": titles})
    # The channel is as old as the session that the checkpoint holds.
    recent = workspace.recent(session, messages, session.count - known.count)
    every = [*(workspace.recent(edited, messages) if events else ()), *recent]
    # A turn that failed has left its message in the channel: many of them would fill it.
    failed = _find_failed(state, known)
    if events or edits or failed or purged or [m.id for m in messages] != [m.id for m in given]:
        shown = show_newest(workspace.store, session, deps.settings.visible_messages)
        update["messages"] = Overwrite([*shown, *select_unstored(messages, every)])
        session = session.model_copy(
            update={"shown": find_shown(shown, workspace.recent(session, shown))}
        )
    if not recent:  # the channel shows all that there is
        session = session.model_copy(update={"shown": 1})
    left_out = tuple(
        f"message {id_!r} was left out: nothing can take in its form" for id_ in faults
    )
    return _Past(workspace, session, messages, recent, every, edits, events, left_out, update)


def _date_fork(session: Session, state: SessionState) -> Session:
    """The session; where a fork begins with this run, with the time of the checkpoint."""
    before = state.get("session") or {}
    if not (before and session.user_id and session.branch != Session.model_validate(before).branch):
        return session
    return session.model_copy(update={"facts_at": (state.get("turn") or {}).get("started", "")})


def _find_failed(state: SessionState, session: Session) -> Turn | None:
    """The turn that has not ended."""
    begun = Turn.model_validate(state["turn"]) if state.get("turn") else None
    return begun if begun and begun.number > session.turn else None


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


def _begin(
    store: SessionStore, session: Session, state: SessionState, replay: Replay | None
) -> tuple[Session, tuple[str, ...], Update]:
    """The session to go on with: that of the checkpoint, behind what others did since."""
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


def _mark_beginnings(
    new: Sequence[StoredMessage], recent: Sequence[StoredMessage], adsorber: Adsorber
) -> tuple[list[StoredMessage], float]:
    """Mark the new messages with which a topic begins, by the adsorber.

    It is not asked about imported chats: each is one topic, so its beginning is known. Also returns
    how likely the last message of the user goes on with what came before it.
    """
    marked: list[StoredMessage] = []
    continues = 0.0
    for message in new:
        if message.role == "user" and message.chat is None and not message.begins:
            verdict = adsorber.judge(group_rounds([*recent, *marked][-LOOK_BACK:]), message)
            continues = verdict.continues
            message = message.model_copy(update={"opens": verdict.opens})
        marked.append(message)
    return marked, round(continues, 4)


def _find_beginning(spoken: Sequence[StoredMessage], user: int) -> int:
    """Number of the message with which the talk before a message began; 0 if there is none."""
    before = [m for m in spoken if m.seq < user][-LOOK_BACK:]
    opening = (m.seq for m in reversed(before) if m.opens)
    return next(opening, before[0].seq if before else 0)
