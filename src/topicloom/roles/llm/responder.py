"""The responder as a chat model: the reply as it comes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import Runnable

from topicloom.roles.base import ReplyRequest
from topicloom.roles.llm.caches import sent
from topicloom.roles.llm.dialogue import config_of
from topicloom.roles.models import name_of

_CONFIG = config_of("responder")


class LLMResponder:
    """Streams the main model's reply, outside the user's stream.

    The graph says the tokens again once it is clear that they are a reply and not a search.
    """

    def __init__(self, model: BaseChatModel) -> None:
        """Args:
        model: The main model; it has to support tools.
        """
        self._model = model

    @property
    def model(self) -> str:
        """The model's name."""
        return name_of(self._model)

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """The chunks of the reply; raises whatever the model's client raises."""
        ready = sent(request.messages, self._model, request.session, "main")
        for chunk in self._bound(request).stream(ready.messages, _CONFIG, **ready.options):
            yield _as_chunk(chunk)

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """The chunks of the reply; raises whatever the model's client raises."""
        ready = sent(request.messages, self._model, request.session, "main")
        chunks = self._bound(request).astream(ready.messages, _CONFIG, **ready.options)
        # Closed with this generator, not by the garbage collector: a reply may be abandoned.
        async with aclosing(cast("AsyncGenerator[AIMessage, None]", chunks)) as open_chunks:
            async for chunk in open_chunks:
                yield _as_chunk(chunk)

    def _bound(self, request: ReplyRequest) -> Runnable[LanguageModelInput, AIMessage]:
        return self._model.bind_tools(request.tools) if request.tools else self._model


def _as_chunk(message: AIMessage) -> AIMessageChunk:
    """A piece of a reply; a model that does not stream gives the whole message instead of one."""
    if isinstance(message, AIMessageChunk):
        return message
    return AIMessageChunk(
        content=message.content,
        name=message.name,
        id=message.id,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        tool_calls=message.tool_calls,
        invalid_tool_calls=message.invalid_tool_calls,
        usage_metadata=message.usage_metadata,
        chunk_position="last",
    )
