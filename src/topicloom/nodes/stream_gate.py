"""Holding a reply back until it is clear that it is one.

A reply that turns into a call of `activate_topic` is abandoned, and what is abandoned must
never have been seen. So the first characters are held back; once they are released, the reply
stands, and a later call only adds to it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import ConfigDict

from topicloom.effects import Step, either, perform
from topicloom.roles.responder import ReplyRequest, Responder
from topicloom.state.stored_message import get_text


@dataclass(frozen=True, slots=True)
class Said:
    """A reply, and whether the user saw it."""

    message: AIMessage
    """The reply, with its usage."""
    seen: bool
    """False for a call of `activate_topic` that was held back whole."""


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

    def __init__(self, responder: Responder, request: ReplyRequest, gate: Gate) -> None:
        self.gate = gate
        self._responder = responder
        self._request = request
        self._chunks: Iterator[AIMessageChunk] | None = None
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

    def next(self) -> AIMessageChunk | None:
        """The next chunk, None at the end; raises whatever the responder raises."""
        if self._chunks is None:
            self._chunks = self._responder.stream(self._request)
        return next(self._chunks, None)

    async def anext(self) -> AIMessageChunk | None:
        """The next chunk on the event loop; raises whatever the responder raises."""
        if self._achunks is None:
            self._achunks = self._responder.astream(self._request)
        return await anext(self._achunks, None)


def stream_reply(reply: Reply) -> Step[Said]:
    """Within a step: pass a reply on into the user's stream, unless it is abandoned."""
    released = yield from perform(reply)
    call = None if released else reply.gate.abandoned()
    if call is not None:
        return Said(call, seen=False)
    relay = Relay(reply=reply)
    message = yield from either(
        lambda: relay.invoke([], stream=True), lambda: relay.ainvoke([], stream=True)
    )
    passed = {"usage_metadata": relay.usage, "name": relay.speaker}
    return Said(message.model_copy(update=passed), seen=True)


def merged(chunks: list[AIMessageChunk]) -> AIMessage:
    """The message that chunks make up; an empty one of no chunks."""
    whole = chunks[0] if chunks else AIMessageChunk(content="")
    for chunk in chunks[1:]:
        whole += chunk
    message = message_chunk_to_message(whole)
    assert isinstance(message, AIMessage)
    return message


class Relay(BaseChatModel):
    """A chat model that says what another one is saying.

    The main model runs outside the user's stream; what may be seen is said again by this one,
    inside it, token by token. It keeps usage to itself, or callbacks would count it twice.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    reply: Reply
    """What was held back of it comes first."""
    usage: UsageMetadata | None = None
    """Sum of the usage that the chunks carried."""
    speaker: str | None = None
    """The name that they carried: LangChain adds chunks up without it."""

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
        yield from map(self._passed_on, self.reply.gate.held)
        while (chunk := self.reply.next()) is not None:
            yield self._passed_on(chunk)

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
        self.usage = (
            add_usage(self.usage, chunk.usage_metadata) if chunk.usage_metadata else self.usage
        )
        return ChatGenerationChunk(message=chunk.model_copy(update={"usage_metadata": None}))
