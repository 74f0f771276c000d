"""Holding a reply back until it is clear that it is one.

A reply that turns into a call of `activate_topic` is abandoned, and what is abandoned must
never have been seen. So the first characters are held back; once they are released, the reply
stands, and a later call only adds to it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Iterator
from concurrent.futures import Future
from functools import partial
from itertools import chain
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langsmith import tracing_context
from pydantic import ConfigDict

from topicloom.background import DaemonWorker
from topicloom.context.layout import MainPrompt
from topicloom.context.prefix import PrefixMeter
from topicloom.context.window import MainWindow
from topicloom.effects import Step, either
from topicloom.errors import InputError, ReplyError
from topicloom.roles.reply_account import account_reply
from topicloom.roles.responder import ReplyRequest, Responder
from topicloom.roles.servers import Server, read_refusal
from topicloom.roles.tracing import make_relay_config
from topicloom.state.messages import breaks_off, identify_calls, is_json_so_far
from topicloom.state.receipt import Call
from topicloom.state.replies import settle_reply
from topicloom.state.safe_text import describe_error
from topicloom.state.session import SearchRequest, Session
from topicloom.state.stored_message import get_text

_CHECKED = 2_000
"""Characters of arguments between two looks at them: LangChain tries one character after another
where the end of a call cannot be read."""
_LONGEST_ARGUMENTS = 1_000_000
"""Characters that the arguments of a call may have."""


class Reply:
    """A reply on its way, held back until it may be released."""

    def __init__(
        self,
        responder: Responder,
        request: ReplyRequest,
        *,
        hold: int,
        seconds: float,
        taken: Collection[str | None],
    ) -> None:
        """Nothing is asked yet.

        Args:
            responder: Gives it.
            request: What is asked.
            hold: Characters that are held back if it may call the tool for a search.
            seconds: It is cut where it goes on for longer.
            taken: Ids that it does not keep: LangGraph would have it replace another message.
        """
        self.request, self.taken = request, taken
        self.held: list[AIMessageChunk] = []
        """The chunks that came before it was released."""
        self.cut = ""
        """The reason why it was ended too early; "" if it was not."""
        self.broken = False
        """True if the arguments of a call break off, whatever the provider says of the end.

        LangChain closes what is open, and a tool would run with half of its arguments.
        """
        self.began = time.monotonic()
        self._hold, self._seconds = hold, seconds
        self._arguments: dict[int | str | None, str] = {}
        self._unchecked = 0
        self.model = responder.model
        self._responder = responder
        self._server: Server | None = getattr(responder, "server", None)
        self._chunks: Iterator[AIMessageChunk] | None = None
        self._worker = DaemonWorker()
        self._achunks: AsyncIterator[AIMessageChunk] | None = None

    def stream(self) -> Step[tuple[AIMessage, bool]]:
        """Within a step: pass it on into the user's stream; returns it, and if the user saw it.

        A call for a search that was held back whole is abandoned.
        """
        released = yield from either(self._hold_back, self._ahold_back)
        if self.request.search and not (released or self.cut or self.broken):
            message = _add_up(self.held)
            if any(call["name"] == self.request.search for call in message.tool_calls):
                return message, False
        message = yield from self._release()
        self.cut = self.cut or (self._server.find_cut(message) if self._server else "")
        if self.broken:
            self.cut = self.cut or "a tool call whose arguments break off"
        return message, True

    def learn(self, error: Exception, window: int) -> bool:
        """True if an error says something new of the server; see `Server.learn`."""
        return bool(self._server and not self.held and self._server.learn(error, window))

    def make_error(self, error: Exception) -> ReplyError:
        """The error of a turn whose model failed. It repeats nothing of the prompt."""
        reason = describe_error(error, "\n".join(map(get_text, self.request.messages)))
        status, retry_after = read_refusal(error)
        failed = ReplyError(
            "{model} gave no reply ({why}). "
            "Your message is kept: ask for the reply again, or send the next message",
            reason=reason,
            status=status,
            retry_after=retry_after,
            model=self.model,
            why=reason,
        )
        failed.add_note("graph.invoke(None, config) runs the turn again")
        return failed

    def settle(
        self, answer: AIMessage, *, seen: bool, edit: str, runs_tools: bool
    ) -> tuple[AIMessage, SearchRequest | None]:
        """What of the answer stands, and the search that it asks for; see `settle_reply`.

        Raises:
            ReplyError: It cannot be stored, or says and calls nothing.
        """
        search = self.request.search
        try:
            message, request = settle_reply(
                answer, seen=seen, cut=self.cut, search=search, edit=edit, runs_tools=runs_tools
            )
        except InputError as error:
            raise ReplyError(
                "{model} gave a reply that cannot be stored: {error}. Your message is kept; send"
                " the next one",
                model=self.model,
                error=error,
                reason=f"a reply that cannot be kept: {error}",
            ) from None
        if message is None:
            why = f" ({self.cut})" if self.cut else ""
            raise ReplyError(
                "{model} gave an empty answer{why}. Your message is kept; send the next one",
                reason=f"an empty answer{why}",
                model=self.model,
                why=why,
            )
        return message, request

    def account(
        self,
        meter: PrefixMeter,
        window: MainWindow,
        session: Session,
        prompt: MainPrompt,
        message: AIMessage,
    ) -> tuple[Session, Call]:
        """The session and the call behind it; see `account_reply`."""
        asked = self.request
        session, call = account_reply(
            meter,
            window.counter,
            session,
            self.model,
            asked.messages,
            message,
            prompt.size,
            window.count_tools(session, asked.callers_tools, search=bool(asked.search)),
            began=self.began,
        )
        remarks = self._server.remarks if self._server else ()
        return session, call.model_copy(update={"remarks": remarks})

    def _hold_back(self) -> bool:
        """True once it may be released, False if it ends before."""
        return any(map(self._take_in, iter(self.next, None)))

    async def _ahold_back(self) -> bool:
        while (chunk := await self.anext()) is not None:
            if self._take_in(chunk):
                return True
        return False

    def _take_in(self, chunk: AIMessageChunk) -> bool:
        """Hold a chunk back; True if everything held may now be released."""
        self.held.append(chunk)
        if not self.request.search:
            return True
        length = sum(len(get_text(c)) for c in self.held)
        return length > self._hold and not any(c.tool_call_chunks for c in self.held)

    def _release(self) -> Step[AIMessage]:
        """Say all of it in the user's stream, under the name of who says it."""
        # A reply of LangChain's cache would be an earlier one, under that one's id.
        relay = Relay(reply=self, model=self.model, streaming=True, cache=False)
        given = list(self.request.messages), make_relay_config(self.request.session)
        invoke, ainvoke = partial(relay.invoke, *given), partial(relay.ainvoke, *given)
        reply = yield from either(invoke, ainvoke, tracing_context(enabled=False))
        return identify_calls(reply).model_copy(update={"name": relay.speaker})

    def next(self) -> AIMessageChunk | None:
        """The next chunk, None at the end; raises whatever the responder raises."""
        if self.cut:
            return None
        chunks = self._chunks = self._chunks or self._responder.stream(self.request)
        # In a thread that nobody has to wait for: a server may keep a stream open for ever.
        coming: Future[AIMessageChunk | None] = self._worker.submit(partial(next, chunks, None))
        try:
            chunk = coming.result(max(0.0, self._left))
        except TimeoutError:
            if coming.done():  # the responder's own
                raise
            self.cut = f"not finished within {self._seconds:g} s"
            chunk = None
        if self._accept(chunk):
            return chunk
        coming.add_done_callback(lambda _: getattr(chunks, "close", lambda: None)())
        return None

    async def anext(self) -> AIMessageChunk | None:
        """The next chunk on the event loop; raises whatever the responder raises."""
        if self.cut:
            return None
        chunks = self._achunks = self._achunks or self._responder.astream(self.request)
        chunk, timer = None, asyncio.timeout(self._left)
        try:
            async with timer:
                chunk = await anext(chunks, None)
        except TimeoutError:
            if not timer.expired():  # the responder's own
                raise
            self.cut = f"not finished within {self._seconds:g} s"
        if self._accept(chunk):
            return chunk
        if close := getattr(chunks, "aclose", None):
            await close()
        return None

    @property
    def _left(self) -> float:
        """Seconds until it is cut."""
        return self.began + self._seconds - time.monotonic()

    def _accept(self, chunk: AIMessageChunk | None) -> bool:
        """True for a chunk; False at the end, and if it adds what no tool call can have."""
        for call in chunk.tool_call_chunks if chunk else ():
            index, added = call["index"], call["args"] or ""
            # Without an index it is a call by itself: LangChain adds it to no other.
            arguments = added if index is None else self._arguments.get(index, "") + added
            self._arguments[index] = arguments
            self._unchecked += len(added)
            if self._unchecked >= _CHECKED:
                self._unchecked = 0
                if len(arguments) > _LONGEST_ARGUMENTS or not is_json_so_far(arguments):
                    self.cut = "a tool call whose arguments cannot be read"
            elif index is None:
                self.broken = self.broken or breaks_off(arguments)
        if chunk is None:
            self.broken = self.broken or any(map(breaks_off, self._arguments.values()))
        return chunk is not None and not self.cut


def _add_up(chunks: list[AIMessageChunk]) -> AIMessage:
    """The message that chunks make up; an empty one of no chunks."""
    # All at once: LangChain parses the arguments of calls with each addition.
    message = message_chunk_to_message(AIMessageChunk(content="") + chunks)
    assert isinstance(message, AIMessage)
    return message


class Relay(BaseChatModel):
    """A chat model that repeats the reply of another one.

    The main model runs outside the user's stream. This one repeats what may be seen inside the
    stream, token by token, under the main model's name and with its usage.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    reply: Reply
    """The reply; the chunks that were held back come first."""
    model: str
    """The main model's name."""
    streaming: bool
    """True for LangChain to stream it, whoever listens."""
    speaker: str | None = None
    """The name that the chunks carried: LangChain adds them up without it."""

    @property
    def _llm_type(self) -> str:
        return "topicloom-relay"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise NotImplementedError("a relay only streams")

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        yield from map(self._passed_on, chain(self.reply.held, iter(self.reply.next, None)))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self.reply.held:
            yield self._passed_on(chunk)
        while (more := await self.reply.anext()) is not None:
            yield self._passed_on(more)

    def _passed_on(self, chunk: AIMessageChunk) -> ChatGenerationChunk:
        self.speaker = chunk.name or self.speaker
        if chunk.id in self.reply.taken:
            chunk = chunk.model_copy(update={"id": None})
        return ChatGenerationChunk(message=chunk)
