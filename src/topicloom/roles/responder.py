"""The responder: it writes the reply."""

from __future__ import annotations

import json
import re
from asyncio import wrap_future
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Protocol, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, SystemMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.tools import BaseTool

from topicloom.background import DaemonWorker
from topicloom.context.token_count import ToolLike
from topicloom.prompts.loader import Prompts
from topicloom.roles.base import RoleSpec
from topicloom.roles.models import blocks_async, get_model_name, to_chunk
from topicloom.roles.prompt_caches import CachedPrompt, comes_from, with_cache_hints
from topicloom.roles.quoted_reply import compose_reply
from topicloom.roles.servers import find_server, stream_raw
from topicloom.roles.tracing import make_config
from topicloom.search.embedder import Embedder
from topicloom.state.language import Language
from topicloom.state.safe_text import cut
from topicloom.state.stored_message import StoredMessage, get_text

_SEARCH = re.compile(r"^[^\w\n]*(?:SEARCH|搜索)[^\w\n]{0,3}[:：]([^|｜\n]*)(?:[|｜](.*))?", re.M)
"""A search that a model without tools asks for, such as `SEARCH: oak table | in May | archived`."""
_ARCHIVED = re.compile(r"(?:^|[|｜])\s*(?:archived|已归档)\s*$", re.I)
"""The end of such a line, where archived topics are to be searched too."""
_MARKUP = " *`_"
_LIMITS = ("max_tokens", "max_output_tokens", "num_predict", "max_new_tokens")
"""Fields by which clients of LangChain limit a reply."""
_TOKEN = 3
"""Bytes of a token, a few less than in most texts."""


@dataclass(frozen=True, slots=True)
class ReplyRequest:
    """The main window as a prompt, and what a responder without a model answers from."""

    session: str
    messages: Sequence[BaseMessage]
    """The prompt: system message first, the message to answer (or tool results) last."""
    tools: Sequence[BaseTool]
    """Tools that may be called; empty when it has to answer in words."""
    query: str
    """The message to answer."""
    sources: Sequence[StoredMessage]
    """Originals that the prompt quotes or shows: those recalled for the query, the best first, then
    those recalled before, then what is in view, the newest first."""
    language: Language
    search: str = ""
    """Name of the tool among them that searches topics; empty if none does."""
    callers_tools: Sequence[dict[str, Any]] = ()
    """Further tools, which the caller runs, as OpenAI writes them."""
    form: Mapping[str, Any] = field(default_factory=dict)
    """The form of the reply: `TurnOptions.reply_form`."""
    tokens: int | None = None
    """Tokens of the reply at most; None for what the settings say."""
    stop: tuple[str, ...] = ()
    """Texts before which the reply ends."""
    days: tuple[str, str] | None = None
    """The first and the last day that the newest search was for, if it was for any."""
    topics: Mapping[int, str] = field(default_factory=dict)
    """The names of the sources' topics, by the number of the message, for one without a model."""

    @property
    def all_tools(self) -> list[ToolLike]:
        """All tools, as `bind_tools` takes them."""
        return [*self.callers_tools, *self.tools]


class Responder(Protocol):
    """Writes the reply, as a stream of chunks; the last ones may carry tool calls and usage."""

    @property
    def model(self) -> str:
        """Name for receipts."""
        ...

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]: ...

    def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]: ...


class ChatResponder:
    """Streams the reply of the main model outside the user's stream.

    The graph emits the tokens once it is clear that they are a reply and not a search. A model
    that takes no tools is told to ask for a search by a line of text.
    """

    def __init__(
        self, model: BaseChatModel, prompts: Prompts | None = None, tokens: int | None = None
    ) -> None:
        self._model, self._prompts, self._tokens = stream_raw(model), prompts or Prompts(), tokens
        self.model = get_model_name(model)
        self.server = find_server(model)
        """The server that the main window has to fit."""
        self.takes_form = comes_from("langchain_openai", model)
        """True for a model of OpenAI's protocol, which can be asked for a form of its reply."""

    def stream(self, request: ReplyRequest) -> Generator[AIMessageChunk]:
        """The chunks of the reply; raises whatever the model's client raises."""
        model, ready, said = *self._prepare(request), list[AIMessage]()
        config = make_config("responder", request.session)
        for chunk in model.stream(ready.messages, config, **ready.options):
            said.append(chunk)
            yield to_chunk(chunk)
        yield from self._find_call(request, said)

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """The chunks of the reply; raises whatever the model's client raises."""
        if blocks_async(self._model, stream=True):
            worker, chunks = DaemonWorker(), self.stream(request)
            try:
                while chunk := await wrap_future(worker.submit(partial(next, chunks, None))):
                    yield chunk
            finally:
                worker.submit(chunks.close)
            return
        model, ready, said = *self._prepare(request), list[AIMessage]()
        config = make_config("responder", request.session)
        achunks = model.astream(ready.messages, config, **ready.options)
        # Closed with this generator, not by the garbage collector: a reply may be abandoned.
        async with aclosing(cast("AsyncGenerator[AIMessage, None]", achunks)) as open_chunks:
            async for chunk in open_chunks:
                said.append(chunk)
                yield to_chunk(chunk)
        for call in self._find_call(request, said):
            yield call

    def _prepare(
        self, request: ReplyRequest
    ) -> tuple[Runnable[LanguageModelInput, AIMessage], CachedPrompt]:
        messages, tools = list(request.messages), request.all_tools
        if "tools" in self.server.refused:
            tools = []
            if request.search:
                asked = self._prompts("search_line", request.language)
                messages[0] = SystemMessage(f"{get_text(messages[0])}\n\n{asked}")
        shaped = self.server.shape(messages)
        ready = with_cache_hints(shaped, self._model, request.session, "main")
        model, limit = self._model, self.server.limit(request.tokens or self._tokens)
        if request.tokens and not limit:
            model, limit = _limit_reply(model, request.tokens)
        stop = {"stop": list(request.stop)} if request.stop else {}
        ready.options.update({**limit, **stop, **request.form})
        bound = model.bind_tools(tools) if tools else model
        if isinstance(bound, RunnableBinding):  # it would add the callbacks around to ours
            ready.options.update(bound.kwargs)
            bound = bound.bound
        return bound, ready

    def _find_call(
        self, request: ReplyRequest, said: Sequence[AIMessage]
    ) -> Iterator[AIMessageChunk]:
        """The search that a model without tools asked for by a line, as the call of the tool."""
        if not request.search or "tools" not in self.server.refused:
            return
        if line := _SEARCH.search("".join(map(get_text, said))):
            rest = (line[2] or "").strip(_MARKUP)
            archived = _ARCHIVED.search(rest)
            when = rest[: archived.start()] if archived else rest
            args = {
                "query": line[1].strip(_MARKUP),
                "when": when.strip(_MARKUP) or None,
                **({"include_archived": True} if archived else {}),
            }
            name = request.search
            call = tool_call_chunk(name=name, args=json.dumps(args), id=name, index=0)
            yield AIMessageChunk(content="", tool_call_chunks=[call])


def _limit_reply(model: BaseChatModel, tokens: int) -> tuple[BaseChatModel, dict[str, Any]]:
    """The model whose replies have so many tokens at most, and options of its requests for that."""
    for name in _LIMITS:
        if name in type(model).model_fields:
            return model.model_copy(update={name: tokens}), {}
    return model, {"max_tokens": tokens}


class EmbeddedResponder:
    """Shows what was said that is closest to the message, and says that this is a search."""

    model = "embedded"
    by_index: ClassVar[bool] = True
    """It answers from what is nearest to the query, and reads nothing else."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        whole = compose_reply(request, self._embedder)
        ends = [place for word in request.stop if (place := whole.find(word)) >= 0]
        said = whole[: min(ends, default=len(whole))]
        room = None if request.tokens is None else request.tokens * _TOKEN
        size = len(said.encode()[:room].decode(errors="ignore"))
        for piece in re.findall(r"\S+\s*|\s+", cut(said, size)):
            yield AIMessageChunk(content=piece)
        if size < len(said):
            yield AIMessageChunk(content="", response_metadata={"finish_reason": "length"})

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        for chunk in self.stream(request):
            yield chunk


RESPONDER: RoleSpec[Responder] = RoleSpec(
    name="responder",
    purpose="writes the reply, and calls tools",
    answers=AIMessageChunk,
    model="strong",
    chat=lambda chat: ChatResponder(chat.model, chat.prompts, chat.answer),
    embedded=EmbeddedResponder,
    without="it is asked again, then the turn ends with `ReplyError`",
)
