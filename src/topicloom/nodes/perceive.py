"""perceive: number the new messages, keep them, and see what they mean for the topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable

from topicloom.boundary.adsorber import LOOK_BACK, Adsorber
from topicloom.errors import InputError, NoNewMessageError
from topicloom.nodes.step import (
    Update,
    current_session,
    dump,
    dumped,
    node,
    open_workspace,
    turn_options,
)
from topicloom.nodes.workspace import Workspaces
from topicloom.roles.base import Rewriter, RewriteRequest
from topicloom.roles.calls import Step, ask
from topicloom.state.blocks import blocks_of
from topicloom.state.channels import SessionState
from topicloom.state.cues import Cues
from topicloom.state.receipt import Call
from topicloom.state.records import Record, key_of, record_of, text_of
from topicloom.state.script import cjk_share
from topicloom.state.session import Language, Session, Turn
from topicloom.storage.removed import REMOVED
from topicloom.storage.sessions import SessionStore


def perceive(
    *,
    workspaces: Workspaces,
    clock: Callable[[], datetime],
    adsorber: Adsorber,
    amnesia: Cues,
    rewriter: Rewriter | None,
    language: Language | None,
) -> Runnable[SessionState, Update]:
    """The node that takes in what is new.

    Args:
        workspaces: Of this process.
        clock: Dates what carries no time of its own.
        adsorber: Sees whether a message begins a topic.
        amnesia: Phrases by which the user says that something was forgotten.
        rewriter: Resolves references; None to take messages as they are.
        language: None to follow the conversation.
    """

    def step(state: SessionState) -> Step[Update]:
        session = current_session(state)
        workspace = open_workspace(workspaces, session)
        messages = state.get("messages", [])
        recent = recent_records(workspace.store, session, messages)
        options = turn_options()
        # A turn that brings changes to the topics of a conversation need not bring a message.
        silent = bool(options.changes and recent)
        fresh = new_messages(messages, recent, answer=options.answer, silent=silent)
        if session.turn == 0:
            spoken = language or language_of([text_of(m) for m in messages])
            session = session.model_copy(update={"language": spoken})
        newest = fresh[-1] if fresh else recent[-1].message
        answer = isinstance(newest, HumanMessage) and options.answer
        query, calls = text_of(newest), list[Call]()
        if answer and rewriter is not None and recent:
            request = RewriteRequest(session.id, query, recent, session.language)
            rewritten, call = yield from ask("rewriter", rewriter, request)
            query = rewritten or query
            calls.append(call)
        now = clock().isoformat(timespec="seconds")
        said = [record_of(m, seq=n, time=now) for n, m in enumerate(fresh, session.count + 1)]
        if answer and said and query != said[-1].text:
            said[-1] = said[-1].model_copy(update={"query": query})
        # Nobody is asked here, where the user waits: an arbiter is when the tail is split.
        records = _judged(said, recent, adsorber)
        session = workspace.store.append(session, records)
        records = records or list(recent[-1:])
        turn = Turn(
            first=records[0].seq,
            user=records[-1].seq,
            query=query,
            answer=answer,
            said=bool(fresh),
            amnesia=answer and amnesia.found_in(records[-1].text),
            started=clock().isoformat(),
        )
        update = {**dump(session, turn), "readings": None, "calls": None}
        return update | ({"calls": dumped(calls)} if calls else {})

    return node(step, "perceive")


def _judged(said: Sequence[Record], recent: Sequence[Record], adsorber: Adsorber) -> list[Record]:
    """New records, each with the adsorber's word on a topic that may begin at it."""
    records: list[Record] = []
    for record in said:
        if record.role == "user":
            verdict = adsorber.judge(blocks_of([*recent, *records][-LOOK_BACK:]), record)
            record = record.model_copy(update={"opens": verdict.opens})
        records.append(record)
    return records


def new_messages(
    messages: Sequence[AnyMessage],
    recent: Sequence[Record],
    answer: bool = True,
    *,
    silent: bool = False,
) -> list[AnyMessage]:
    """The messages that a turn takes in.

    Args:
        messages: The `messages` channel.
        recent: The newest records of the transcript.
        answer: Whether the turn answers.
        silent: Whether it may take in none.

    Returns:
        None of them if a message in the transcript still waits for its answer: it was sent again
        after a crash, or after a reply that failed. Tools that ran for it meanwhile stay in the
        loop.

    Raises:
        NoNewMessageError: If there is none, nothing waits for an answer either, and the turn may
            not be silent.
        InputError: If what there is to answer is empty.
    """
    if messages and not _says_something(messages[-1]):
        raise InputError("the message is empty: give it a text or another content block")
    fresh = unheard(messages, recent)
    waits = _waits(messages, fresh, recent)
    if not (fresh or waits or silent):
        raise NoNewMessageError(
            "there is no new message: every id in the input is part of the conversation already. "
            "Give a repeated message an id of its own, or none"
        )
    return [] if waits and answer else fresh


def _waits(
    messages: Sequence[AnyMessage], fresh: Sequence[AnyMessage], recent: Sequence[Record]
) -> bool:
    """Whether the newest user message has had no answer yet, only tool calls if anything."""
    heard = messages[: len(messages) - len(fresh)]
    if not (heard and recent and recent[-1].role == "user" and heard[-1].id == recent[-1].source):
        return False
    return all(isinstance(m, ToolMessage) or getattr(m, "tool_calls", None) for m in fresh)


def unheard(messages: Sequence[AnyMessage], recent: Sequence[Record]) -> list[AnyMessage]:
    """The messages that are not in the transcript yet.

    A message whose id is known but whose content differs counts as new: applications reuse
    ids, and nothing that was said may be lost. It stands in the channel where the other one
    stood, so places in the channel say nothing. An empty one that an earlier turn refused does
    not count, and neither does one that was removed on purpose: the channel may still show it.
    """
    known = {key_of(r.message) for r in recent}
    gone = {r.source for r in recent if r.text == REMOVED}
    return [
        m for m in messages if _says_something(m) and key_of(m) not in known and m.id not in gone
    ]


def recent_records(
    store: SessionStore, session: Session, messages: Sequence[AnyMessage]
) -> list[Record]:
    """The newest records of the transcript, as many as the channel has messages and some more."""
    back = max(LOOK_BACK, len(messages))
    return store.records(session, session.count - back + 1)


def language_of(texts: Sequence[str]) -> Language:
    """Chinese if a third of the letters are CJK, otherwise English."""
    return "zh" if cjk_share(" ".join(texts)[:4_000]) > 1 / 3 else "en"


def _says_something(message: AnyMessage) -> bool:
    if not isinstance(message, HumanMessage):
        return True  # a tool's result may well be empty, and so is a reply that calls tools
    blocks = message.content if isinstance(message.content, list) else []
    other = any(isinstance(b, dict) and b.get("type") != "text" for b in blocks)
    return other or bool(text_of(message).strip())
