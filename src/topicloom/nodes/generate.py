"""generate: the main model answers, or asks for more topics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime

from topicloom.context.layout import MainPrompt
from topicloom.context.prefix import PrefixMeter
from topicloom.context.window import MainWindow
from topicloom.errors import ReplyError
from topicloom.nodes.hold import Gate, Said, asay, say, words_of
from topicloom.nodes.perceive import recent_records, unheard
from topicloom.nodes.step import (
    Update,
    current_session,
    current_turn,
    dump,
    emit,
    open_workspace,
)
from topicloom.nodes.workspace import Workspaces
from topicloom.roles.base import ReplyRequest, Responder
from topicloom.state.channels import SessionState
from topicloom.state.receipt import Call
from topicloom.state.records import text_of
from topicloom.state.session import SearchRequest, Session, Turn
from topicloom.storage.sessions import SessionStore


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Everything that the reply needs, laid out."""

    session: Session
    turn: Turn
    request: ReplyRequest
    prompt: MainPrompt
    gate: Gate
    began: float


def generate(
    *,
    workspaces: Workspaces,
    window: MainWindow,
    responder: Responder,
    meter: PrefixMeter,
    hold_characters: int,
    search_rounds: int,
) -> Runnable[SessionState, Update]:
    """The node that has the main model reply, in the user's stream.

    Raises:
        ReplyError: If the model fails or says nothing. The user's message is kept all the same.
    """

    def prepare(state: SessionState) -> _Prepared:
        session, turn = current_session(state), current_turn(state)
        workspace = open_workspace(workspaces, session)
        store = workspace.store
        view = store.records(session, session.view)
        prompt = window.layout.prompt(
            window.system(session),
            view,
            store.notes(session),
            lambda number: store.record(session, number),
            session.language,
            loop=loop_of(state["messages"], store, session),
            view_tokens=workspace.sizes.between(session, session.view, session.count),
        )
        may_search = bool(session.topics) and len(turn.searches) < search_rounds
        request = ReplyRequest(
            session=session.id,
            messages=prompt.messages,
            # Past the last round the tool is not offered, so that the answer comes in words.
            tools=window.bound(session) if may_search else list(window.tools),
            query=turn.query,
            sources=[*prompt.sources, *reversed(view[:-1])],
            language=session.language,
        )
        gate = Gate(hold_characters if may_search else -1, window.search.name)
        info = get_runtime().execution_info
        if info is not None and info.node_attempt > 1:
            emit("reply_restarted")
        return _Prepared(session, turn, request, prompt, gate, time.monotonic())

    def conclude(prepared: _Prepared, said: Said) -> Update:
        session, turn, message = prepared.session, prepared.turn, said.message
        request = _wanted(message, prepared.gate)
        if (request and said.seen) or not (request or window.tools):
            # What the user saw stands, even if it goes on to ask for more topics, and so do the
            # words of a reply that calls a tool which nobody offered.
            message = words_of(message)
        if not (message.content or message.tool_calls):
            raise ReplyError(
                f"{responder.model} gave an empty answer; your message is kept, send the next one"
            )
        call = _call(prepared, message, window, responder.model, meter)
        reported = message.usage_metadata["input_tokens"] if message.usage_metadata else 0
        estimated = sum(prepared.prompt.sections.values()) + window.counter.tools(
            prepared.request.tools
        )
        session = session.model_copy(
            update={"correction": session.correction.observe(estimated, reported)}
        )
        turn = turn.model_copy(
            update={
                "request": request,
                "abandoned": turn.abandoned + (not said.seen),
                "sections": prepared.prompt.sections,
            }
        )
        update = dump(session, turn) | {
            "calls": [call.model_dump(mode="json", exclude_defaults=True)]
        }
        if said.seen:
            update["messages"] = [message]
        return update

    def sync(state: SessionState) -> Update:
        prepared = prepare(state)
        try:
            said = say(responder.stream(prepared.request), prepared.gate)
        except GraphBubbleUp:
            raise
        except Exception as error:
            raise _failure(responder, error) from error
        return conclude(prepared, said)

    async def asynchronous(state: SessionState) -> Update:
        prepared = await asyncio.to_thread(prepare, state)
        try:
            said = await asay(responder.astream(prepared.request), prepared.gate)
        except GraphBubbleUp:
            raise
        except Exception as error:
            raise _failure(responder, error) from error
        return await asyncio.to_thread(conclude, prepared, said)

    return RunnableLambda(sync, asynchronous, name="generate")


def loop_of(
    messages: Sequence[AnyMessage], store: SessionStore, session: Session
) -> list[AnyMessage]:
    """What has been said since the message to answer: the tool loop."""
    return unheard(messages, recent_records(store, session, messages))


def _failure(responder: Responder, error: Exception) -> ReplyError:
    return ReplyError(
        f"{responder.model} gave no reply ({type(error).__name__}: {error}). "
        "Your message is kept; send the next one, or run the turn again with invoke(None)"
    )


def _wanted(message: AIMessage, gate: Gate) -> SearchRequest | None:
    if gate.characters < 0:
        return None
    calls = [c["args"] for c in message.tool_calls if c["name"] == gate.search]
    if not calls:
        return None
    args = calls[0]
    query, when = args.get("query"), args.get("when")
    return SearchRequest(
        query=query if isinstance(query, str) else text_of(message),
        when=when if isinstance(when, str) and when.strip() else None,
        include_archived=args.get("include_archived") is True,
    )


def _call(
    prepared: _Prepared, message: AIMessage, window: MainWindow, model: str, meter: PrefixMeter
) -> Call:
    usage = message.usage_metadata
    counted = sum(prepared.prompt.sections.values())
    return Call(
        role="responder",
        model=model,
        seconds=round(time.monotonic() - prepared.began, 4),
        input_tokens=usage["input_tokens"] if usage else counted,
        output_tokens=usage["output_tokens"] if usage else window.counter.message(message),
        cached_tokens=(usage.get("input_token_details") or {}).get("cache_read", 0) if usage else 0,
        repeated=meter.share(
            prepared.session.id, "main", prepared.request.messages, window.counter.message
        ),
    )
