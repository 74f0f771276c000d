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
from topicloom.nodes.edit import calls_of
from topicloom.nodes.hold import Gate, Said, asay, say, words_of
from topicloom.nodes.perceive import recent_records, unheard
from topicloom.nodes.step import (
    Update,
    current_session,
    current_turn,
    dump,
    dumped,
    emit,
    open_workspace,
)
from topicloom.nodes.workspace import Workspaces
from topicloom.roles.responder import ReplyRequest, Responder
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
    main = _Main(workspaces, window, responder, meter, hold_characters, search_rounds)
    return RunnableLambda(main.reply, main.areply, name="generate")


@dataclass(frozen=True, slots=True)
class _Main:
    """The main window at work."""

    workspaces: Workspaces
    window: MainWindow
    responder: Responder
    meter: PrefixMeter
    hold_characters: int
    search_rounds: int

    def reply(self, state: SessionState) -> Update:
        """Lay the prompt out, pass the reply on, account for it."""
        prepared = self._prepare(state)
        try:
            said = say(self.responder.stream(prepared.request), prepared.gate)
        except GraphBubbleUp:
            raise
        except Exception as error:  # however a provider fails, it ends in one clear error
            raise self._failure(error) from error
        return self._conclude(prepared, said)

    async def areply(self, state: SessionState) -> Update:
        """`reply` on the event loop."""
        prepared = await asyncio.to_thread(self._prepare, state)
        try:
            said = await asay(self.responder.astream(prepared.request), prepared.gate)
        except GraphBubbleUp:
            raise
        except Exception as error:  # however a provider fails, it ends in one clear error
            raise self._failure(error) from error
        return await asyncio.to_thread(self._conclude, prepared, said)

    def _prepare(self, state: SessionState) -> _Prepared:
        session, turn = current_session(state), current_turn(state)
        workspace = open_workspace(self.workspaces, session)
        store, window = workspace.store, self.window
        view = store.records(session, session.view)
        prompt = window.prompt(
            session,
            view,
            store.notes(session),
            lambda number: store.record(session, number),
            loop=loop_of(state["messages"], store, session),
            view_tokens=workspace.sizes.between(session, session.view, session.count),
        )
        may_search = bool(session.topics) and len(turn.searches) < self.search_rounds
        request = ReplyRequest(
            session=session.id,
            messages=prompt.messages,
            # Past the last round the tool is not offered, so that the answer comes in words.
            tools=window.bound(session, search=may_search),
            query=turn.query,
            sources=[*prompt.sources, *reversed(view[:-1])],
            language=session.language,
        )
        gate = Gate(self.hold_characters if may_search else -1, window.search.name)
        info = get_runtime().execution_info
        if info is not None and info.node_attempt > 1:
            emit("reply_restarted")
        return _Prepared(session, turn, request, prompt, gate, time.monotonic())

    def _conclude(self, prepared: _Prepared, said: Said) -> Update:
        turn, message = prepared.turn, said.message
        request = _wanted(message, prepared.gate)
        edits = self.window.edit is not None and bool(calls_of(message))
        if edits and said.seen:
            request = None  # an edit that the user was told of goes before a search
        if (request and said.seen) or not (request or self.window.tools or edits):
            # What the user saw stands, even if it goes on to ask for more topics, and so do the
            # words of a reply that calls a tool which nobody offered.
            message = words_of(message)
        if not (message.content or message.tool_calls or edits):
            raise ReplyError(
                f"{self.responder.model} gave an empty answer; your message is kept, send the next"
            )
        turn = turn.model_copy(
            update={
                "request": request,
                "abandoned": turn.abandoned + (not said.seen),
                "sections": prepared.prompt.sections,
            }
        )
        update = dump(self._corrected(prepared, message), turn)
        update["calls"] = dumped([self._call(prepared, message)])
        if said.seen:
            update["messages"] = [message]
        return update

    def _corrected(self, prepared: _Prepared, message: AIMessage) -> Session:
        """The session, with what the provider's report teaches about the estimates."""
        reported = message.usage_metadata["input_tokens"] if message.usage_metadata else 0
        estimated = prepared.prompt.size + self.window.counter.tools(prepared.request.tools)
        correction = prepared.session.correction.observe(estimated, reported)
        return prepared.session.model_copy(update={"correction": correction})

    def _call(self, prepared: _Prepared, message: AIMessage) -> Call:
        usage, counter = message.usage_metadata, self.window.counter
        details = usage.get("input_token_details", {}) if usage else {}
        return Call(
            role="responder",
            model=self.responder.model,
            seconds=round(time.monotonic() - prepared.began, 4),
            input_tokens=usage["input_tokens"] if usage else prepared.prompt.size,
            output_tokens=usage["output_tokens"] if usage else counter.message(message),
            cached_tokens=details.get("cache_read") or 0,
            repeated=self.meter.share(
                prepared.session.id, "main", prepared.request.messages, counter.message
            ),
        )

    def _failure(self, error: Exception) -> ReplyError:
        return ReplyError(
            f"{self.responder.model} gave no reply ({type(error).__name__}: {error}). "
            "Your message is kept; send the next one, or run the turn again with invoke(None)"
        )


def loop_of(
    messages: Sequence[AnyMessage], store: SessionStore, session: Session
) -> list[AnyMessage]:
    """What has been said since the message to answer: the tool loop."""
    return unheard(messages, recent_records(store, session, messages))


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
