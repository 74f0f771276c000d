"""Opening chat models from strings such as `openai:gpt-5-mini`, and from runnables made of one."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding, ensure_config
from langchain_core.runnables.config import var_child_runnable_config
from langsmith import tracing_context
from pydantic import Field, SecretStr

from topicloom.errors import ConfigurationError, UnknownModelError, suggest
from topicloom.extras import name_install

NO_KEY = "not-needed"
"""Sent to servers of one's own, which ask for no key but whose clients insist on one."""


def open_model(
    spec: object,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = 60.0,
    max_retries: int = 2,
) -> BaseChatModel:
    """The chat model that a setting names; None is for what the environment or the provider says.

    `spec` is a chat model, which is returned as it is; or a runnable made of one, such as
    `model.bind(...)` or a configurable one; or `openai:NAME`, for OpenAI and every
    server that speaks its protocol; or `provider:NAME` of any other provider of LangChain's
    `init_chat_model`, if the `langchain` package is installed. `timeout` is in seconds, up to the
    next part of an answer. Raises `UnknownModelError` if the string names no model that can be
    opened, or is neither a string nor a runnable, and `ConfigurationError` if a key or a package
    is missing.
    """
    if isinstance(spec, BaseChatModel):
        return spec
    if isinstance(spec, Runnable):
        return RunnableModel.of(spec, get_model_name(spec))
    provider, _, name = spec.strip().partition(":") if isinstance(spec, str) else ("", "", "")
    if not (isinstance(spec, str) and provider and name):
        raise UnknownModelError(
            "{model!r} names no model: give a provider and a name, such as "
            '"openai:gpt-5-mini" or "anthropic:claude-sonnet-4-5", or a LangChain chat model',
            model=spec,
        )
    if provider == "openai":
        return _open_openai(name, base_url, api_key, timeout, max_retries)
    given = {"base_url": base_url, "api_key": api_key}
    options = {k: v for k, v in given.items() if v} | {"timeout": timeout}
    return _open_other(spec, provider, name, options | {"max_retries": max_retries})


_PROVIDERS = (
    "openai anthropic google_genai google_vertexai azure_openai bedrock bedrock_converse mistralai"
    " ollama groq cohere deepseek xai fireworks together huggingface nvidia perplexity openrouter"
).split()
"""Likely providers, by which a misspelt one is known."""


_PUBLISHED = {
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "azure_openai": "azure.ai.openai",
    "mistralai": "mistral_ai",
    "xai": "x_ai",
    **dict.fromkeys(("aws", "bedrock", "bedrock_converse"), "aws.bedrock"),
}
"""What OpenTelemetry calls providers that LangChain has under another name."""


def find_provider(model: object) -> str:
    """The provider of a chat model, as OpenTelemetry names it; "" if that is not known."""
    while isinstance(model, RunnableBinding):
        model = model.bound
    if isinstance(model, str):
        name = model.strip().partition(":")[0]
    else:
        before, ours, name = type(model).__module__.partition(".")[0].partition("langchain_")
        name = name if ours and not before and name != "core" else ""
    return _PUBLISHED.get(name, name)


def get_model_name(model: object) -> str:
    """The name that a chat model goes by, for receipts and token counters; a name is its own."""
    if isinstance(model, str):
        return model
    names = (getattr(model, field, None) for field in ("model_name", "model", "model_id"))
    return next((n for n in names if isinstance(n, str) and n), type(model).__name__)


def get_usage(message: AIMessage) -> UsageMetadata | None:
    """The usage that a provider reported for a call; None if it did not.

    Of a reply without a report, LangChain's cache reports a cost of 0 and no tokens.
    """
    usage = message.usage_metadata
    return usage if usage and "input_tokens" in usage else None


def get_window_size(model: BaseChatModel, default: int) -> int:
    """Tokens of the model's window as its profile has them, else the default."""
    size = (model.profile or {}).get("max_input_tokens")
    return size if isinstance(size, int) and size > 0 else default


def blocks_async(model: BaseChatModel, *, stream: bool = False) -> bool:
    """True if LangChain would run the sync form of a call in asyncio's own pool of threads.

    A few that hang fill it, and nothing else goes on.
    """
    own = {n for n in _FORMS if getattr(type(model), n) is not getattr(BaseChatModel, n, None)}
    if stream and (own & {"_stream", "_astream"}):
        return "_astream" not in own
    return "_agenerate" not in own


_FORMS = ("_stream", "_astream", "_agenerate")


def take_retries(model: BaseChatModel) -> tuple[BaseChatModel, int]:
    """The model with a client that makes one request a call, and how often it would have retried:
    that is for those who know the deadline.

    It streams only if it always does: in a user's stream, LangChain would have it stream, and a
    time-out starts anew with each chunk.
    """
    client: Any = getattr(model, "root_client", None)
    retries = getattr(client or model, "max_retries", None) or 0
    if not client:
        return (model.model_copy(update={"max_retries": 0}) if retries else model), retries
    own, once = cast("Any", model), client.with_options(max_retries=0)
    async_once = own.root_async_client.with_options(max_retries=0)
    clients = {"root_client": once, "root_async_client": async_once}
    calls = {"client": once.chat.completions, "async_client": async_once.chat.completions}
    whole = {"disable_streaming": not own.streaming}
    return model.model_copy(update=clients | calls | whole), retries


def _open_openai(
    name: str, base_url: str | None, api_key: str | None, timeout: float, max_retries: int
) -> BaseChatModel:
    # Imported here because it takes a second, and embedded roles never need it.
    from langchain_openai import ChatOpenAI

    from topicloom.roles.openai_client import get_loop_client

    address = base_url or os.getenv("OPENAI_API_BASE") or os.getenv("OPENAI_BASE_URL")
    key = api_key or os.getenv("OPENAI_API_KEY") or (NO_KEY if address else None)
    if key is None:
        raise ConfigurationError(
            "no key for 'openai:{name}': set the environment variable OPENAI_API_KEY, "
            "or a base URL of a server that needs none",
            name=name,
        )
    # Usage has to be asked for: away from OpenAI's own address it is off by default.
    return ChatOpenAI(
        model=name,
        base_url=base_url,
        api_key=SecretStr(key),
        timeout=timeout,
        max_retries=max_retries,
        stream_usage=True,
        http_async_client=get_loop_client(),
    )


def _open_other(spec: str, provider: str, name: str, options: dict[str, Any]) -> BaseChatModel:
    meant = "" if provider in _PROVIDERS else suggest(provider, _PROVIDERS)
    try:
        init_chat_model = import_module("langchain.chat_models").init_chat_model
    except ImportError as error:
        raise ConfigurationError(
            "{spec!r} needs the package langchain beside the provider's own: {install}{meant}",
            spec=spec,
            install=name_install("providers"),
            meant=meant,
        ) from error
    try:
        model = init_chat_model(name, model_provider=provider, **options)
    except ImportError as error:
        raise ConfigurationError(
            "{model!r} needs a package that is missing: {error}", model=spec, error=error
        ) from error
    except ValueError as error:
        raise UnknownModelError(
            "{model!r} cannot be opened: {error} Examples of what can be: "
            '"openai:gpt-5-mini", "anthropic:claude-sonnet-4-5"{meant}',
            model=spec,
            error=str(error).splitlines()[0],
            meant=meant,
        ) from error
    return cast("BaseChatModel", model)


class RunnableModel(BaseChatModel):
    """A runnable that takes messages and gives one, as a chat model.

    Its calls are traced as this one's, not once more as those of what is inside.
    """

    runnable: Any
    options: dict[str, Any] = Field(default_factory=dict)
    """Arguments of every call."""
    config: dict[str, Any] = Field(default_factory=dict)
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
            runnable=runnable, options=options, config=config, model_name=name, profile=profile
        )

    def bind_tools(self, tools: Any, **kwargs: Any) -> RunnableModel:
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
