"""The responder as a chat model: the reply as it comes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import Runnable

from topicloom.roles.base import ReplyRequest
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
        for chunk in self._bound(request).stream(list(request.messages), _CONFIG):
            yield cast("AIMessageChunk", chunk)

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """The chunks of the reply; raises whatever the model's client raises."""
        chunks = self._bound(request).astream(list(request.messages), _CONFIG)
        # Closed with this generator, not by the garbage collector: a reply may be abandoned.
        async with aclosing(cast("AsyncGenerator[AIMessageChunk, None]", chunks)) as open_chunks:
            async for chunk in open_chunks:
                yield chunk

    def _bound(self, request: ReplyRequest) -> Runnable[LanguageModelInput, AIMessage]:
        return self._model.bind_tools(request.tools) if request.tools else self._model
