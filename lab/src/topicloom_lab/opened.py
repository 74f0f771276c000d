"""A chat model to be measured, and results of long runs, which go on where they stopped."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult
from pydantic import Field
from rich.console import Console

from topicloom import ConfigurationError
from topicloom.lab import get_text, open_model
from topicloom_lab.cli.output import counting, write_rows

Row = dict[str, Any]
T = TypeVar("T")

_PATIENCE = 3_600.0
"""Seconds that an answer may take, on the slowest machine."""


@dataclass
class CallLog(BaseCallbackHandler):
    """Keeps the requests to a model, one after another, as rows of results."""

    calls: list[Row] = field(default_factory=list)
    began: float = 0.0

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        """A request goes out."""
        self.began = time.monotonic()
        prompt = [[m.type, get_text(m)] for m in messages[0]]
        self.calls.append({"prompt": prompt, "answer": "", "finish": ""})
        self._count(0, 0, 0)

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Its answer is there; tokens as the server counts them."""
        (generation,) = response.generations[0]
        assert isinstance(generation, ChatGeneration)
        message = generation.message
        # `length` says that an answer was cut off.
        finish = str(message.response_metadata.get("finish_reason") or "")
        self.calls[-1] |= {"answer": get_text(message), "finish": finish}
        usage = message.usage_metadata if isinstance(message, AIMessage) else None
        if usage:
            cached = usage.get("input_token_details", {}).get("cache_read") or 0
            self._count(usage["input_tokens"], cached, usage["output_tokens"])

    def _count(self, read: int, cached: int, written: int) -> None:
        seconds = round(time.monotonic() - self.began, 3)
        self.calls[-1] |= {"read": read, "cached": cached, "written": written, "seconds": seconds}


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model with the log of its requests."""

    model: BaseChatModel
    log: CallLog

    def attempt(self, work: Callable[[BaseChatModel], T]) -> tuple[T | None, Row]:
        """What work with the model gives, None if it fails; why, and its requests, as a row.

        Raises `ConfigurationError` if nobody listens where the model is to be, or who did is gone,
        and `NotAnsweredYet` if the request waits in a file.
        """
        self.log.calls.clear()
        value, failure = None, ""
        try:
            value = work(self.model)
        except NotAnsweredYet:
            raise
        except Exception as error:  # clients raise anything; the answer says what
            if lost := _find_lost_connection(error):
                raise ConfigurationError(
                    "the model's server cannot be reached ({lost}): start it, or name it by"
                    " --base-url, and run this again; what stands in --out is not asked again",
                    lost=lost,
                ) from error
            failure = f"{type(error).__name__}: {error}"
        return value, {"failure": failure, "calls": list(self.log.calls)}


def _find_lost_connection(error: BaseException | None) -> OSError | None:
    """Why a connection failed, if it did; a server that is slow is there."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return None if isinstance(error, TimeoutError) else error


class NotAnsweredYet(Exception):
    """A request was written to a file, for somebody else to answer."""


class BatchModel(BaseChatModel):
    """A chat model that is asked by files, in the form of OpenAI's batches.

    What has no reply yet is written to the file of requests, once. Servers, providers and programs
    that answer such a file write the replies to another one, often at half the price.
    """

    model: str
    max_tokens: int
    requests: Path | None = None
    """Gets the requests without a reply; None writes none."""
    replies: Mapping[str, Row] = Field(default_factory=dict)
    """Bodies of the replies, by `custom_id`."""
    written: set[str] = Field(default_factory=set)
    """The `custom_id` of each request that is in the file."""

    @property
    def _llm_type(self) -> str:
        return "batch"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        said = convert_to_openai_messages(messages)
        body = {"model": self.model, "messages": said, "temperature": 0}
        body["max_tokens"] = self.max_tokens
        name = sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:40]
        if name not in self.replies:
            if self.requests and name not in self.written:
                request = {"custom_id": name, "method": "POST", "url": "/v1/chat/completions"}
                write_rows(self.requests, [request | {"body": body}], add=True)
                self.written.add(name)
            raise NotAnsweredYet(name)
        reply = self.replies[name]
        choice, usage = reply["choices"][0], reply.get("usage") or {}
        counts = (int(usage.get(f"{kind}_tokens", 0)) for kind in ("prompt", "completion"))
        read, wrote = counts
        message = AIMessage(
            choice["message"].get("content") or "",
            response_metadata={"finish_reason": choice.get("finish_reason")},
            usage_metadata={
                "input_tokens": read,
                "output_tokens": wrote,
                "total_tokens": read + wrote,
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def load_replies(path: Path | None) -> dict[str, Row]:
    """Bodies of the replies of a batch by `custom_id`; what failed there is left out.

    Raises:
        ConfigurationError: The file cannot be read, or holds something else.
    """
    if path is None:
        return {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            "--replies {path} cannot be read: {error}", path=path, error=error
        ) from error
    found = {}
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            name, body = row["custom_id"], (row.get("response") or {}).get("body") or {}
            if body.get("choices"):
                found[name] = body
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigurationError(
                '{path}:{number} is no reply of a batch, {{"custom_id", "response": {{"body"}}}}:'
                " give the file that was written for --requests",
                path=path,
                number=number,
            ) from error
    return found


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The model to measure."""

    name: str
    """As `openai:qwen`; servers of one's own mostly take any name."""
    base_url: str | None = None
    """Of an OpenAI-compatible server, with its `/v1`."""
    max_tokens: int = 600
    """Tokens of an answer; small models may never end by themselves."""
    requests: Path | None = None
    """A file that gets the requests, in the place of a server."""
    replies: Path | None = None
    """A file with the replies to them."""

    def open(self) -> OpenedModel:
        """The model, at temperature 0; raises `ConfigurationError` if it cannot be opened."""
        if self.requests or self.replies:
            return self._open_batch()
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ConfigurationError(
                "{base_url!r} is no address: give one such as http://127.0.0.1:8080/v1",
                base_url=self.base_url,
            )
        model = open_model(self.name, base_url=self.base_url, timeout=_PATIENCE, max_retries=0)
        log = CallLog()
        given = {"temperature": 0.0, "max_tokens": self.max_tokens, "callbacks": [log]}
        return OpenedModel(model.model_copy(update=given), log)

    def _open_batch(self) -> OpenedModel:
        if self.base_url:
            raise ConfigurationError("--requests and --replies need no --base-url: leave it out")
        log = CallLog()
        model = BatchModel(
            model=self.name.partition(":")[2] or self.name,
            max_tokens=self.max_tokens,
            requests=self.requests,
            replies=load_replies(self.replies),
            written={row["custom_id"] for row in load_rows(self.requests)},
            callbacks=[log],
        )
        return OpenedModel(model, log)


_BEGINNINGS = (b'{"case": ', b'{"conversation": ', b'{"custom_id": ')
"""How rows of results begin."""


def load_rows(out: Path | None) -> list[Row]:
    """The rows of a file of results; none if there is no file.

    A last row that was being written when a run was stopped is taken away.

    Raises:
        ConfigurationError: It cannot be read, or holds something else.
    """
    found, lines = list[Row](), list[bytes]()
    try:
        if out is not None and out.exists():
            lines = out.read_bytes().splitlines(keepends=True)
            if lines and _is_torn(lines[-1]):
                os.truncate(out, sum(map(len, lines[:-1])))
                del lines[-1]
    except OSError as error:
        raise ConfigurationError(
            "{out} cannot be read: {reason}; choose another file with --out",
            out=out,
            reason=error.strerror,
        ) from error
    for number, line in enumerate(lines, start=1):
        try:
            found.append(dict(json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ConfigurationError(
                "{out}:{number} is no row of results ({error}): choose another file with --out",
                out=out,
                number=number,
                error=error,
            ) from error
    return found


def _is_torn(line: bytes) -> bool:
    begun = any(line.startswith(beginning[: len(line)]) for beginning in _BEGINNINGS)
    return begun and not line.endswith(b"\n")


class Rows:
    """Rows of one run by case, in a file if there is one, which may hold other runs as well."""

    def __init__(
        self,
        out: Path | None,
        run: Mapping[str, object],
        earlier: Mapping[str, object] | None = None,
    ) -> None:
        """Read what is there of the run.

        Args:
            out: The file.
            run: What tells the run from others: model, windows and so on.
            earlier: What held of rows that do not say it.

        Raises:
            ConfigurationError: The file holds something else.
        """
        self._out, self._run = out, dict(run)
        self._rows: dict[str, Row] = {}
        for row in load_rows(out):
            if self._run.items() <= ({**(earlier or {}), **row}).items():
                if "case" not in row:
                    raise ConfigurationError(
                        "{out} holds what is no row of results: choose another file with --out",
                        out=out,
                    )
                self._rows[row["case"]] = row

    def complete(
        self,
        cases: Sequence[str],
        makers: Iterable[Callable[[], Row]],
        console: Console,
        what: str,
    ) -> list[Row]:
        """The rows of some cases in their order, those that are missing made and written.

        The makers are as many as the cases, and not looked at if no row is missing. A case whose
        request waits in a file has no row yet. Raises `StorageUnavailableError` if one cannot be
        written.
        """
        if all(case in self._rows for case in cases):
            return [self._rows[case] for case in cases]
        found, done = list[Row](), 0
        with counting(console, what, len(cases)) as progress:
            for case, make in zip(cases, makers, strict=True):
                if case not in self._rows:
                    with suppress(NotAnsweredYet):
                        self._rows[case] = row = {"case": case} | self._run | make()
                        if self._out is not None:
                            write_rows(self._out, [row], add=True)
                if case in self._rows:
                    found.append(self._rows[case])
                done += 1
                progress(done)
        return found
