"""The server of a model, as far as it has shown itself: its context, and what it refuses.

It is found out once and kept for the process, by address and model: from the server's list of
models, and from the errors that it answers with.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    merge_message_runs,
)

from topicloom.state.safe_text import clip, describe_error
from topicloom.state.stored_message import get_text

Need = Literal[
    "tools", "json_schema", "roles in a row", "system", "later system", "max_tokens", "images"
]
"""The needs of a request: tools, an answer by a schema, several messages of one role in a row, a
system message, one behind the first message, a limited answer, images in what the user says."""

_REFUSALS: Mapping[Need, str] = {
    "tools": r"\btools?\b.{0,80}(support|require|enable)|support.{0,40}\b(tool|function)"
    r"|^NotImplementedError",
    "json_schema": r"response_format|json_schema|structured output|grammar",
    "roles in a row": r"\balternat(e|ing)\b",
    "system": r"\bsystem\b.{0,20}\brole|\brole.{0,20}\bsystem",
    "later system": r"\bsystem ?messages?\b.{0,30}\b(begin|first|start)|non-consecutive system",
    "max_tokens": r"max_(completion_)?tokens",
    "images": r"\b(images?|image_url|vision|multi-?modal)( content| inputs?)?s? (is|are) "
    r"(not|only) support|\bnot support (images?|vision|multi-?modal)\b(?! (type|format))"
    r"|not a multi-?modal|unknown variant `image_url`",
}
"""Words by which servers refuse it."""
_CONTEXT = re.compile(
    r"(?:context (?:size|length|window)|n_ctx|tokens allowed)\W{0,4}(?:is |of )?(?:only )?"
    r"(\d[\d,]*)|> (\d[\d,]*) maximum"
)
"""The context in the words of llama.cpp, vLLM, OpenAI, LM Studio, Gemini and Anthropic."""
_ENDS = ("finish_reason", "stop_reason", "done_reason", "stopReason", "status")
"""Keys under which providers say why an answer ends."""
_CUT = re.compile(r"length|max_|filter|safety|recitation|exceed|incomplete|resource|error", re.I)
"""Words for an answer that ends too early."""
_SHRINK = 0.75
"""Share of a context that is used where a prompt made for it was too long: tokenizers of small
models count up to 1.4 times what was estimated."""
_SMALLEST = 1_000
"""Tokens of the smallest window."""
_PATIENCE = 2.0
"""Seconds that a server may take to list its models."""
_HOSTED = (".openai.com", ".azure.com")


class Server:
    """The server of one model. Safe to use from several threads."""

    def __init__(self, model: BaseChatModel | None = None) -> None:
        """Ask nothing yet; without a model there is nobody to ask."""
        self.model, self._client = model, getattr(model, "root_client", None)
        self._name = getattr(model, "model_name", "")
        self._extra = getattr(model, "extra_body", None) or {}
        self.own = self._client is not None and not get_host(model).endswith(_HOSTED)
        """True for a server of OpenAI's protocol that is not OpenAI's."""
        self.refused: dict[Need, str] = {}
        """The needs that it refuses, each with its own words."""
        profile = (model and model.profile) or {}
        self._thinks = profile.get("reasoning_output") is True
        """True if thoughts are counted among the tokens of an answer."""
        self._sees = profile.get("image_inputs") is not False
        self._asked = not self.own
        self._context: int | None = None
        self._lock = Lock()

    @property
    def context(self) -> int | None:
        """Tokens of its context as it says; None if it does not. Asks it, the first time."""
        with self._lock:
            if not self._asked:
                self._asked, self._context = True, _list_context(self._client, self._name)
            return self._context

    @property
    def takes_media(self) -> bool:
        """False where images are refused, or its model takes none by its profile."""
        return self._sees and "images" not in self.refused

    @property
    def holds_schema(self) -> bool:
        """True if it holds answers to a JSON schema, as far as is known."""
        return self.own and "json_schema" not in self.refused

    @property
    def remarks(self) -> tuple[str, ...]:
        """The needs that it refuses, a line each, for receipts."""
        return tuple(f"no {need}: {why}" for need, why in self.refused.items())

    def learn(self, error: Exception, built_for: int) -> bool:
        """True if an error says something new, so that the next request will be another one.

        Either a prompt made for a window of `built_for` tokens is too long, or a need is refused.
        """
        text = describe_error(error)  # what was sent says nothing of the server
        if found := _CONTEXT.search(str(error)[:500]):
            named = int((found[1] or found[2]).replace(",", ""))
            # No tokenizer counts twice what was estimated: what is too long then cannot shrink.
            least = max(_SMALLEST, named // 2)
            smaller = max(least, named if named < built_for else int(built_for * _SHRINK))
            with self._lock:
                self._context = min(smaller, self._context or smaller)
                return self._context < built_for
        needs = (need for need, words in _REFUSALS.items() if re.search(words, text, re.I))
        new = next((need for need in needs if need not in self.refused), None)
        if new:
            self.refused[new] = text
        return new is not None

    def notice_thoughts(self, answer: AIMessage) -> None:
        """Limit answers no more if one ended in its thoughts for want of tokens."""
        text, cut = get_text(answer), answer.response_metadata.get("finish_reason") == "length"
        self._thinks = self._thinks or (cut and (not text or "<think" in text))

    def find_cut(self, answer: AIMessage) -> str:
        """The reason why an answer ends too early, in its provider's word; "" for a whole one."""
        # OpenAI's protocol names one in any case, unless the stream broke off.
        unnamed = "" if self._client is None else "incomplete: no end"
        reason = next(filter(None, map(answer.response_metadata.get, _ENDS)), unnamed)
        return clip(str(reason), 40) if _CUT.search(str(reason)) else ""

    def shape(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Messages as a chat template wants them that insists on user and assistant in turns.

        Its server's cache goes by tokens, so that messages made one are the same prefix. Without a
        system role, or one behind the first message, the user says it.
        """
        shaped, refused = list(messages), self.refused.keys()
        if refused & {"system", "later system"}:
            begun = "system" not in refused
            behind = [HumanMessage(m.content) if m.type == "system" else m for m in shaped[begun:]]
            shaped[begun:] = behind
        if refused.isdisjoint({"system", "roles in a row"}):
            return shaped
        return merge_message_runs(shaped, chunk_separator="\n\n")

    def limit(
        self,
        tokens: int | None,
        seconds: float | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Options of a request that takes some seconds, and its answer some tokens at most.

        A schema is for one's own servers: OpenAI has it in front of the cached prefix.
        """
        if self._client is None:
            return {}
        options: dict[str, Any] = {} if seconds is None else {"timeout": seconds}
        body: dict[str, Any] = {}
        if tokens is not None and not self._thinks and "max_tokens" not in self.refused:
            body["max_tokens"] = tokens
        if not self.own:
            return options | body
        if schema is not None and self.holds_schema:
            named = {"name": "answer", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        # As it is: the client writes OpenAI's newer name of a limit, and parses by a schema.
        return options | ({"extra_body": self._extra | body} if body else {})


_SERVERS: dict[tuple[str, str, str], Server] = {}


def read_refusal(error: Exception) -> tuple[int | None, str]:
    """The HTTP status that a server answered with, and its `Retry-After` header.

    None and "" where an error has none. Clients of OpenAI's, Anthropic's and most other protocols
    carry the status as `status_code`, and the answer as `response`.
    """
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    headers = getattr(response, "headers", None)
    wait = headers.get("retry-after") if isinstance(headers, Mapping) else None
    return status if isinstance(status, int) else None, clip(str(wait or ""), 40)


def find_server(model: BaseChatModel) -> Server:
    """The server of a model: one for all models of a name at an address, where that is known."""
    client, server = getattr(model, "root_client", None), Server(model)
    if client is None:
        return server
    options = repr(getattr(model, "extra_body", None))
    key = (str(client.base_url), getattr(model, "model_name", ""), options)
    return _SERVERS.setdefault(key, server)


def stream_raw(model: BaseChatModel) -> BaseChatModel:
    """The model with a client of OpenAI's protocol that streams chunks as they are sent.

    To build its own objects takes the client longer than all else that is done with a chunk, and
    LangChain makes dictionaries of them again. Arguments come in small pieces: LangChain parses
    each piece by itself, for minutes where it is large and no whole JSON.
    """
    client, aclient = getattr(model, "client", None), getattr(model, "async_client", None)
    if get_host(model) == "." or client is None:
        return model
    clients = {"client": _Completions(client), "async_client": _AsyncCompletions(aclient)}
    return model.model_copy(update=clients)


_PIECE = 1_000
"""Characters of arguments that LangChain parses at once, in any case."""


@dataclass(frozen=True, slots=True)
class _Completions:
    """A client's completions, with streams of dictionaries that are small."""

    made_by: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made_by, name)

    def create(self, **request: Any) -> Any:
        if not request.get("stream"):
            return self.made_by.create(**request)
        from openai import Stream  # takes a second: a graph without a model does not need it

        answer = self.made_by.with_raw_response.create(**request)
        return _stream_cut(answer.parse(to=Stream[object]))


class _AsyncCompletions(_Completions):
    async def create(self, **request: Any) -> Any:
        if not request.get("stream"):
            return await self.made_by.create(**request)
        from openai import AsyncStream

        answer = await self.made_by.with_raw_response.create(**request)
        return _astream_cut(answer.parse(to=AsyncStream[object]))


@contextmanager
def _stream_cut(stream: Any) -> Iterator[Iterator[Any]]:
    with stream:
        yield (piece for chunk in stream for piece in _cut_chunk(chunk))


@asynccontextmanager
async def _astream_cut(stream: Any) -> AsyncIterator[AsyncIterator[Any]]:
    async with stream:
        yield (piece async for chunk in stream for piece in _cut_chunk(chunk))


def _cut_chunk(chunk: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A chunk; behind it, chunks of their own for what is left of arguments that are too long."""
    rest = []
    for choice in chunk.get("choices") or ():
        for call in (choice.get("delta") or {}).get("tool_calls") or ():
            called = call.get("function") or {}
            text = called.get("arguments") or ""
            if len(text) > _PIECE:
                called["arguments"] = text[:_PIECE]
                places = range(_PIECE, len(text), _PIECE)
                rest += [(choice["index"], call["index"], text[n : n + _PIECE]) for n in places]
    yield chunk
    for choice, index, text in rest:
        called = {"index": index, "function": {"arguments": text}}
        yield {"choices": [{"index": choice, "delta": {"tool_calls": [called]}}]}


def get_host(model: BaseChatModel | None) -> str:
    """The host that a client of OpenAI's protocol asks, behind a dot; "." for others."""
    client = getattr(model, "root_client", None)
    return f".{urlsplit(str(getattr(client, 'base_url', ''))).hostname or ''}"


def _list_context(client: Any, name: str) -> int | None:
    """The context in a server's list of models: `meta.n_ctx` of llama.cpp, or others' keys."""
    try:
        listed = client.with_options(timeout=_PATIENCE, max_retries=0).models.list().data
        rows = [row.model_dump() for row in listed]
    except Exception:  # noqa: BLE001 - servers send anything: its size is unknown
        return None
    named = [row for row in rows if row.get("id") == name] or rows
    said = named[0] | (named[0].get("meta") or {}) if len(named) == 1 else {}
    sizes = [said.get(key) for key in ("n_ctx", "max_model_len", "context_length")]
    return min((max(s, _SMALLEST) for s in sizes if isinstance(s, int) and s > 0), default=None)
