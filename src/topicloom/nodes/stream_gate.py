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
from dataclasses import dataclass, field
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
from topicloom.effects import Step, either, perform
from topicloom.roles.responder import ReplyRequest, Responder
from topicloom.roles.tracing import make_relay_config
from topicloom.state.messages import identify_calls, is_json_so_far
from topicloom.state.stored_message import get_text

_CHECKED = 2_000
"""Characters of arguments between two looks at them: LangChain tries one character after another
where the end of a call cannot be read."""
_LONGEST_ARGUMENTS = 1_000_000
"""Characters that the arguments of a call may have."""


@dataclass(frozen=True, slots=True)
class Said:
    """A reply, and whether the user saw it."""

    message: AIMessage
    """The reply, with its usage."""
    seen: bool
    """False for a call of `activate_topic` that was held back whole."""
    cut: str = ""
    """The reason why it was ended too early."""


@dataclass(slots=True)
class Gate:
    """Decides when chunks may be released."""

    characters: int
    """How many characters are held back; -1 to hold nothing back."""
    search: str
    """Name of the tool whose call abandons a reply."""
    held: list[AIMessageChunk] = field(default_factory=list)

    def passes(self, chunk: AIMessageChunk) -> bool:
        """Take a chunk in; whether everything held may now be released."""
        self.held.append(chunk)
        if self.characters < 0:
            return True
        length = sum(len(get_text(c)) for c in self.held)
        return length > self.characters and not any(c.tool_call_chunks for c in self.held)

    def abandoned(self) -> AIMessage | None:
        """At the end of a reply that was held back whole: the call it turned out to be."""
        message = merged(self.held)
        is_search = any(call["name"] == self.search for call in message.tool_calls)
        return message if is_search and self.characters >= 0 else None


class Reply:
    """A reply on its way. As an effect: hold it back until the gate opens."""

    def __init__(
        self,
        responder: Responder,
        request: ReplyRequest,
        gate: Gate,
        seconds: float,
        taken: Collection[str | None] = (),
    ) -> None:
        """Nothing is asked yet. It is cut where it goes on for more than some seconds.

        Ids that are `taken` it does not keep: LangGraph would have it replace another message.
        """
        self.gate, self.taken = gate, taken
        self.cut = ""
        """The reason why it was ended too early; "" if it was not."""
        self._seconds, self._end = seconds, time.monotonic() + seconds
        self._arguments: dict[int | str | None, str] = {}
        self._unchecked = 0
        self._responder = responder
        self._request = request
        self._chunks: Iterator[AIMessageChunk] | None = None
        self._worker = DaemonWorker()
        self._achunks: AsyncIterator[AIMessageChunk] | None = None

    def perform(self) -> bool:
        """True once the gate opens, False if the reply ends before."""
        return any(map(self.gate.passes, iter(self.next, None)))

    async def aperform(self) -> bool:
        """The same on the event loop."""
        while (chunk := await self.anext()) is not None:
            if self.gate.passes(chunk):
                return True
        return False

    def release(self) -> Step[AIMessage]:
        """Within a step: say all of it in the user's stream, under the name of who says it."""
        # A reply of LangChain's cache would be an earlier one, under that one's id.
        relay = Relay(reply=self, model=self._responder.model, streaming=True, cache=False)
        given = list(self._request.messages), make_relay_config(self._request.session)
        invoke, ainvoke = partial(relay.invoke, *given), partial(relay.ainvoke, *given)
        said = yield from either(invoke, ainvoke, tracing_context(enabled=False))
        return identify_calls(said).model_copy(update={"name": relay.speaker})

    def next(self) -> AIMessageChunk | None:
        """The next chunk, None at the end; raises whatever the responder raises."""
        if self.cut:
            return None
        chunks = self._chunks = self._chunks or self._responder.stream(self._request)
        # In a thread that nobody has to wait for: a server may keep a stream open for ever.
        coming: Future[AIMessageChunk | None] = self._worker.submit(partial(next, chunks, None))
        try:
            chunk = coming.result(max(0.0, self._end - time.monotonic()))
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
        chunks = self._achunks = self._achunks or self._responder.astream(self._request)
        chunk, timer = None, asyncio.timeout(self._end - time.monotonic())
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

    def _accept(self, chunk: AIMessageChunk | None) -> bool:
        """True for a chunk; False at the end, and if it adds what no tool call can have."""
        for call in chunk.tool_call_chunks if chunk else ():
            arguments = self._arguments.get(call["index"], "") + (call["args"] or "")
            self._unchecked += len(call["args"] or "")
            self._arguments[call["index"]] = arguments if call["index"] is not None else ""
            if self._unchecked >= _CHECKED:
                self._unchecked = 0
                if len(arguments) > _LONGEST_ARGUMENTS or not is_json_so_far(arguments):
                    self.cut = "a tool call whose arguments cannot be read"
        return chunk is not None and not self.cut


def stream_reply(reply: Reply) -> Step[Said]:
    """Within a step: pass a reply on into the user's stream, unless it is abandoned."""
    released = yield from perform(reply)
    call = None if released or reply.cut else reply.gate.abandoned()
    if call is not None:
        return Said(call, seen=False)
    message = yield from reply.release()
    return Said(message, seen=True, cut=reply.cut)


def merged(chunks: list[AIMessageChunk]) -> AIMessage:
    """The message that chunks make up; an empty one of no chunks."""
    # All at once: LangChain parses the arguments of calls with each addition.
    message = message_chunk_to_message(AIMessageChunk(content="") + chunks)
    assert isinstance(message, AIMessage)
    return message


class Relay(BaseChatModel):
    """A chat model that says what another one is saying.

    The main model runs outside the user's stream; what may be seen is said again by this one,
    inside it, token by token, under that one's name and with its usage.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    reply: Reply
    """What was held back of it comes first."""
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
        yield from map(self._passed_on, chain(self.reply.gate.held, iter(self.reply.next, None)))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self.reply.gate.held:
            yield self._passed_on(chunk)
        while (more := await self.reply.anext()) is not None:
            yield self._passed_on(more)

    def _passed_on(self, chunk: AIMessageChunk) -> ChatGenerationChunk:
        self.speaker = chunk.name or self.speaker
        if chunk.id in self.reply.taken:
            chunk = chunk.model_copy(update={"id": None})
        return ChatGenerationChunk(message=chunk)
