"""Chat models that are no `BaseChatModel`: `model.bind(...)`, and those chosen when they run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding, ensure_config
from langchain_core.runnables.config import var_child_runnable_config
from langsmith import tracing_context


class RunnableModel(BaseChatModel):
    """A runnable that takes messages and gives one, as a chat model.

    Its calls are traced as this one's, not once more as those of what is inside.
    """

    runnable: Any
    options: dict[str, Any] = {}  # noqa: RUF012 - a field, which pydantic copies
    """Arguments of every call."""
    config: dict[str, Any] = {}  # noqa: RUF012
    model_name: str = ""

    @classmethod
    def of(cls, runnable: Runnable[Any, Any], name: str) -> RunnableModel:
        """Such a model; what is bound to the runnable stays so."""
        options, config = dict[str, Any](), dict[str, Any]()
        while isinstance(runnable, RunnableBinding):
            options, config = {**runnable.kwargs, **options}, {**runnable.config, **config}
            runnable = runnable.bound
        profile = getattr(runnable, "profile", None)
        return cls(
            runnable=runnable,
            options=options,
            config=config,
            model_name=name,
            profile=profile,
        )

    def bind_tools(self, tools: Any, **kwargs: Any) -> RunnableModel:
        """The same with tools."""
        bound = type(self).of(self.runnable.bind_tools(tools, **kwargs), self.model_name)
        return bound.model_copy(
            update={"options": self.options | bound.options, "config": self.config | bound.config}
        )

    @property
    def _llm_type(self) -> str:
        return "runnable"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        with _untraced():
            said = self.runnable.invoke(messages, self.config, **self._merge(stop, kwargs))
        return ChatResult(generations=[ChatGeneration(message=said)])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        with _untraced():
            said = await self.runnable.ainvoke(messages, self.config, **self._merge(stop, kwargs))
        return ChatResult(generations=[ChatGeneration(message=said)])

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        chunks = self.runnable.stream(messages, self.config, **self._merge(stop, kwargs))
        with _untraced():  # where its run begins
            said = next(chunks, None)
        while said is not None:
            yield ChatGenerationChunk(message=to_chunk(said))
            said = next(chunks, None)

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        chunks = self.runnable.astream(messages, self.config, **self._merge(stop, kwargs))
        with _untraced():
            said = await anext(chunks, None)
        while said is not None:
            yield ChatGenerationChunk(message=to_chunk(said))
            said = await anext(chunks, None)

    def _merge(self, stop: Any, given: dict[str, Any]) -> dict[str, Any]:
        return {**self.options, **given, **({"stop": stop} if stop else {})}


@contextmanager
def _untraced() -> Iterator[None]:
    """Begin runs that no handler around is told of."""
    token = var_child_runnable_config.set({**ensure_config(), "callbacks": None})
    try:
        with tracing_context(enabled=False):
            yield
    finally:
        var_child_runnable_config.reset(token)


def to_chunk(message: AIMessage) -> AIMessageChunk:
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
