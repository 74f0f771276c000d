"""Holding a reply back until it is clear that it is one.

A reply that turns into a call of `activate_topic` is abandoned, and what is abandoned must
never have been seen. So the first characters are held back; once they are released, the reply
stands, and a later call only adds to it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    message_chunk_to_message,
)
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from topicloom.state.records import text_of


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
    """What is held back so far."""

    def passes(self, chunk: AIMessageChunk) -> bool:
        """Take a chunk in; whether everything held may now be released."""
        self.held.append(chunk)
        if self.characters < 0:
            return True
        length = sum(len(text_of(c)) for c in self.held)
        return length > self.characters and not any(c.tool_call_chunks for c in self.held)

    def abandoned(self) -> AIMessage | None:
        """At the end of a reply that was held back whole: the call it turned out to be."""
        message = merged(self.held)
        is_search = any(call["name"] == self.search for call in message.tool_calls)
        return message if is_search and self.characters >= 0 else None


def say(chunks: Iterator[AIMessageChunk], gate: Gate) -> Said:
    """Pass a reply on into the user's stream, unless it is abandoned."""
    for chunk in chunks:
        if gate.passes(chunk):
            return _relay(chain(gate.held, chunks))
    call = gate.abandoned()
    return Said(call, seen=False) if call else _relay(iter(gate.held))


async def asay(chunks: AsyncIterator[AIMessageChunk], gate: Gate) -> Said:
    """`say` on the event loop."""
    async for chunk in chunks:
        if gate.passes(chunk):
            return await _arelay(_achain(gate.held, chunks))
    call = gate.abandoned()
    return Said(call, seen=False) if call else await _arelay(_achain(gate.held, None))


def merged(chunks: list[AIMessageChunk]) -> AIMessage:
    """The message that chunks make up; an empty one of no chunks."""
    whole = chunks[0] if chunks else AIMessageChunk(content="")
    for chunk in chunks[1:]:
        whole += chunk
    message = message_chunk_to_message(whole)
    assert isinstance(message, AIMessage)
    return message


def words_of(message: AIMessage) -> AIMessage:
    """The message without its tool calls, wherever a provider repeats them."""
    content = message.content
    if isinstance(content, list):
        content = [b for b in content if not (isinstance(b, dict) and b.get("type") in _CALLS)]
    extra = {k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"}
    bare = {"tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": extra}
    return message.model_copy(update={"content": content, **bare})


_CALLS = frozenset({"tool_use", "tool_call", "function_call", "input_json_delta"})
"""Content blocks that stand for a tool call."""


def _relay(chunks: Iterator[AIMessageChunk]) -> Said:
    model = Relay(chunks=chunks)
    return Said(model.with_usage(model.invoke([], stream=True)), seen=True)


async def _arelay(chunks: AsyncIterator[AIMessageChunk]) -> Said:
    model = Relay(chunks=chunks)
    return Said(model.with_usage(await model.ainvoke([], stream=True)), seen=True)


async def _achain(
    held: list[AIMessageChunk], rest: AsyncIterator[AIMessageChunk] | None
) -> AsyncIterator[AIMessageChunk]:
    for chunk in held:
        yield chunk
    if rest is not None:
        async for chunk in rest:
            yield chunk


class Relay(BaseChatModel):
    """A chat model that says what another one is saying.

    The main model runs outside the user's stream; what may be seen is said again by this one,
    inside it, token by token. It keeps usage to itself, or callbacks would count it twice.
    """

    chunks: Any
    """An iterator or asynchronous iterator of `AIMessageChunk`."""
    usage: UsageMetadata | None = None
    """Sum of the usage that the chunks carried."""

    def with_usage(self, message: AIMessage) -> AIMessage:
        """The message with the usage that was kept from it."""
        return message.model_copy(update={"usage_metadata": self.usage})

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
        for chunk in self.chunks:
            yield self._passed_on(chunk)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in self.chunks:
            yield self._passed_on(chunk)

    def _passed_on(self, chunk: AIMessageChunk) -> ChatGenerationChunk:
        self.usage = (
            add_usage(self.usage, chunk.usage_metadata) if chunk.usage_metadata else self.usage
        )
        return ChatGenerationChunk(message=chunk.model_copy(update={"usage_metadata": None}))
