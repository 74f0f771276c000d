"""Roles that do as a test tells them, and a clock that ticks when it is looked at."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from threading import Lock
from typing import Any

from langchain_core.messages import AIMessageChunk

from topicloom.index.hashing import HashingEmbedder
from topicloom.roles.base import Answer, LocalRole
from topicloom.roles.brief import BRIEF, Brief, BriefRequest, BriefWriter
from topicloom.roles.choice import embedded_roles
from topicloom.roles.reader import READER, Reader, ReadRequest
from topicloom.roles.registry import Roles
from topicloom.roles.responder import RESPONDER, ReplyRequest, Responder
from topicloom.roles.rewriter import REWRITER, Rewriter
from topicloom.roles.router import ROUTER, Route, Router, RouteRequest
from topicloom.roles.splitter import SPLITTER, SplitRequest, Splitter
from topicloom.state.recall import Quote, Reading
from topicloom.state.rounds import Round
from topicloom.state.splitting import Assignment

Said = str | Sequence[AIMessageChunk | Exception] | Exception
"""One reply: a text, chunks (an exception among them is raised there), or an exception."""


class Clock:
    """Tells a time of its own that goes on by a step whenever it is asked."""

    def __init__(self, step: timedelta = timedelta(seconds=1)) -> None:
        self.now = datetime(2026, 3, 2, 9, 0, tzinfo=timezone(timedelta(hours=8)))
        self._step = step
        self._lock = Lock()

    def __call__(self) -> datetime:
        with self._lock:
            self.now += self._step
            return self.now


class ScriptedResponder:
    """Replies from a script, an entry a call, and then in one way for ever."""

    model = "scripted"

    def __init__(
        self,
        *script: Said,
        otherwise: Said | Callable[[ReplyRequest], Said] = "All right, noted.",
    ) -> None:
        self.script = list(script)
        self.otherwise = otherwise
        self.requests: list[ReplyRequest] = []

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """The next reply, word by word."""
        self.requests.append(request)
        said = self.script.pop(0) if self.script else self.otherwise
        yield from _chunks(said(request) if callable(said) else said)

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """The next reply, word by word."""
        for chunk in self.stream(request):
            yield chunk

    @property
    def prompts(self) -> list[list[str]]:
        """The texts of the prompts so far."""
        return [[str(m.content) for m in r.messages] for r in self.requests]


def _chunks(said: Said) -> Iterator[AIMessageChunk]:
    if isinstance(said, Exception):
        raise said
    if isinstance(said, str):
        for piece in said.split(" "):
            yield AIMessageChunk(content=piece if piece == said.split(" ")[0] else f" {piece}")
        return
    for chunk in said:
        if isinstance(chunk, Exception):
            raise chunk
        yield chunk


def calling(name: str, args: Mapping[str, Any], *, text: str = "") -> list[AIMessageChunk]:
    """A reply that calls a tool, after some text."""
    call = {"name": name, "args": json.dumps(args), "id": f"call-{name}", "index": 0}
    spoken = [AIMessageChunk(content=text)] if text else []
    return [*spoken, AIMessageChunk(content="", tool_call_chunks=[call])]


def searching(query: str, *, text: str = "", **args: Any) -> list[AIMessageChunk]:
    """A reply that asks for more topics, after some text."""
    return calling("activate_topic", {"query": query, **args}, text=text)


@dataclass
class SteadyReader(LocalRole[ReadRequest, Reading]):
    """Gives every topic the score of its name and quotes its oldest user messages."""

    scores: Mapping[str, float] = field(default_factory=dict)
    otherwise: float = 0.5
    quotes: int = 2
    summary: str = ""
    requests: list[ReadRequest] = field(default_factory=list)

    def call(self, request: ReadRequest) -> Answer[Reading]:
        self.requests.append(request)
        score = self.scores.get(request.topic.name, self.otherwise)
        ids = [r.id for r in request.messages if r.role == "user"][: self.quotes]
        quotes = tuple(Quote(id=i, weight=score) for i in ids)
        return Answer(
            Reading(topic=request.topic.id, score=score, quotes=quotes, summary=self.summary)
        )


@dataclass
class TaggedSplitter(LocalRole[SplitRequest, tuple[Assignment, ...]]):
    """Goes by what a message begins with: `tea: ...` belongs to the topic `tea`."""

    covers: Callable[[Round], bool] = lambda round_: True
    """Which rounds it says anything about."""
    requests: list[SplitRequest] = field(default_factory=list)

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        self.requests.append(request)
        known = {t.name: t.id for t in request.topics}
        return Answer(
            tuple(
                Assignment(message=i, topic=known.get(tag_of(b.text)), name=tag_of(b.text))
                for b in request.rounds
                if self.covers(b)
                for i in b.ids
            )
        )


def tag_of(text: str) -> str:
    """What stands before the first colon, Latin or Chinese."""
    return text.replace("：", ":").partition(":")[0].strip()[:40] or "untitled"


@dataclass
class NamedRouter(LocalRole[RouteRequest, Route]):
    """Finds topics by name, as told."""

    relevance: Mapping[str, float]
    requests: list[RouteRequest] = field(default_factory=list)

    def call(self, request: RouteRequest) -> Answer[Route]:
        self.requests.append(request)
        found = {t.id: self.relevance[t.name] for t in request.topics if t.name in self.relevance}
        return Answer(Route(found, "" if found else "nothing like it"))


class PlainBriefs(LocalRole[BriefRequest, Brief]):
    """Keeps the name and says how much there is."""

    def call(self, request: BriefRequest) -> Answer[Brief]:
        return Answer(Brief(request.topic.name, f"{request.topic.name}, {len(request.messages)}"))


@dataclass
class Raising(LocalRole[Any, Any]):
    """Any role; it raises."""

    error: Exception = field(default_factory=lambda: RuntimeError("out of order"))
    asked: int = 0

    def call(self, request: Any) -> Answer[Any]:
        self.asked += 1
        raise self.error


@dataclass
class Late(LocalRole[Any, Any]):
    """Any role; it takes longer than its deadline."""

    seconds: float = 0.5
    deadline: float | None = 0.05

    def call(self, request: Any) -> Answer[Any]:
        time.sleep(self.seconds)
        return Answer(None)

    async def acall(self, request: Any) -> Answer[Any]:
        await asyncio.sleep(self.seconds)
        return Answer(None)


@dataclass
class Rubbish(LocalRole[Any, Any]):
    """Any role; its answer is whatever it was told to give."""

    value: Any

    def call(self, request: Any) -> Answer[Any]:
        value = self.value(request) if callable(self.value) else self.value
        return Answer(value)


def fake_roles(
    responder: Responder | None = None,
    *,
    reader: Reader | None = None,
    splitter: Splitter | None = None,
    router: Router | None = None,
    brief: BriefWriter | None = None,
    rewriter: Rewriter | None = None,
) -> Roles:
    """Roles that need no model; the stand-ins are the embedded ones over hashed words."""
    embedded = embedded_roles(HashingEmbedder(256))
    return (
        embedded.replace(RESPONDER, responder or ScriptedResponder())
        .replace(READER, reader or SteadyReader())
        .replace(SPLITTER, splitter or TaggedSplitter())
        .replace(ROUTER, router or embedded[ROUTER])
        .replace(BRIEF, brief or PlainBriefs())
        .replace(REWRITER, rewriter)
    )
