"""Fakes for tests of applications: scripted roles and a clock. No key, no network. And a suite.

    from topicloom import build_session_graph
    from topicloom.testing import Clock, ScriptedResponder, fake_roles

    responder = ScriptedResponder("Oak, then.", otherwise="Noted.")
    builder = build_session_graph(roles=fake_roles(responder), clock=Clock())

`Roles.replace` puts any other fake into the place of any role, such as
`fake_roles().replace(SELECTOR, FailingRole())`.

`list_storage_checks` has what every storage has to do, for one of your own: call each check with a
function that opens one empty place again, as another process would.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from threading import Lock
from typing import Any

from langchain_core.messages import AIMessageChunk

from topicloom.roles.base import Answer, LocalRole
from topicloom.roles.brief import BRIEF, Brief, BriefRequest, BriefWriter
from topicloom.roles.choice import embedded_roles
from topicloom.roles.reader import READER, Reader, ReadRequest, TopicWindow
from topicloom.roles.registry import Roles
from topicloom.roles.responder import RESPONDER, ReplyRequest, Responder
from topicloom.roles.rewriter import REWRITER, Rewriter
from topicloom.roles.router import ROUTER, Route, Router, RouteRequest
from topicloom.roles.splitter import SPLITTER, SplitRequest, Splitter
from topicloom.search.hashing import HashingEmbedder
from topicloom.state.recall import Quote, Reading
from topicloom.state.rounds import Round
from topicloom.state.safe_text import cut
from topicloom.state.splitting import Assignment
from topicloom.storage.contract import Check as StorageCheck, list_storage_checks

__all__ = [
    "Clock",
    "FailingRole",
    "FixedRole",
    "NameRouter",
    "PlainBriefWriter",
    "ScriptedReply",
    "ScriptedResponder",
    "SteadyReader",
    "StorageCheck",
    "TaggedSplitter",
    "fake_roles",
    "list_storage_checks",
    "make_tool_call",
    "make_topic_search",
    "read_tag",
]

ScriptedReply = str | Sequence[AIMessageChunk | Exception] | Exception
"""One reply: a text, chunks (an exception among them is raised there), or an exception."""


class Clock:
    """A clock that advances by a step whenever it is read, from 2 March 2026, 9:00, on."""

    def __init__(self, step: timedelta = timedelta(seconds=1)) -> None:
        self.now = datetime(2026, 3, 2, 9, 0, tzinfo=timezone(timedelta(hours=8)))
        self._step = step
        self._lock = Lock()

    def __call__(self) -> datetime:
        with self._lock:
            self.now += self._step
            return self.now


class ScriptedResponder:
    """Replies from a script, one entry for each call, and with `otherwise` when it is used up."""

    model = "scripted"

    def __init__(
        self,
        *script: ScriptedReply,
        otherwise: ScriptedReply | Callable[[ReplyRequest], ScriptedReply] = "All right, noted.",
    ) -> None:
        self.script = list(script)
        self.otherwise = otherwise
        self.requests: list[ReplyRequest] = []

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """Stream the next reply, word by word."""
        self.requests.append(request)
        said = self.script.pop(0) if self.script else self.otherwise
        yield from _chunks(said(request) if callable(said) else said)

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """Stream the next reply, word by word."""
        for chunk in self.stream(request):
            yield chunk

    @property
    def prompts(self) -> list[list[str]]:
        """The texts of all prompts so far, oldest first."""
        return [[str(m.content) for m in r.messages] for r in self.requests]


def _chunks(said: ScriptedReply) -> Iterator[AIMessageChunk]:
    if isinstance(said, Exception):
        raise said
    if isinstance(said, str):
        said = [AIMessageChunk(content=piece) for piece in re.split("(?= )", said)]
    for chunk in said:
        if isinstance(chunk, Exception):
            raise chunk
        yield chunk


def make_tool_call(name: str, args: Mapping[str, Any], *, text: str = "") -> list[AIMessageChunk]:
    """A reply that calls a tool, after some text."""
    call = {"name": name, "args": json.dumps(args), "id": f"call-{name}", "index": 0}
    spoken = [AIMessageChunk(content=text)] if text else []
    return [*spoken, AIMessageChunk(content="", tool_call_chunks=[call])]


def make_topic_search(query: str, *, text: str = "", **args: Any) -> list[AIMessageChunk]:
    """A reply that asks for more topics, after some text."""
    return make_tool_call("activate_topic", {"query": query, **args}, text=text)


@dataclass
class SteadyReader(LocalRole[ReadRequest, tuple[Reading, ...]]):
    """Gives every topic the score of its name and quotes its oldest user messages."""

    scores: Mapping[str, float] = field(default_factory=dict)
    otherwise: float = 0.5
    quotes: int = 2
    summary: str = ""
    requests: list[ReadRequest] = field(default_factory=list)

    def call(self, request: ReadRequest) -> Answer[tuple[Reading, ...]]:
        self.requests.append(request)
        return Answer(tuple(map(self._read, request.windows)))

    def _read(self, window: TopicWindow) -> Reading:
        score = self.scores.get(window.topic.name, self.otherwise)
        ids = [m.id for m in window.messages if m.role == "user"][: self.quotes]
        quotes = tuple(Quote(id=i, weight=score) for i in ids)
        return Reading(topic=window.topic.id, score=score, quotes=quotes, summary=self.summary)


@dataclass
class TaggedSplitter(LocalRole[SplitRequest, tuple[Assignment, ...]]):
    """Assigns a message by its first words: `tea: ...` belongs to the topic `tea`."""

    covers: Callable[[Round], bool] = lambda round_: True
    """Selects the rounds that it assigns; all of them by default."""
    requests: list[SplitRequest] = field(default_factory=list)

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        self.requests.append(request)
        known = {t.name: t.id for t in request.topics}
        return Answer(
            tuple(
                Assignment(message=i, topic=known.get(read_tag(b.text)), name=read_tag(b.text))
                for b in request.rounds
                if self.covers(b)
                for i in b.ids
            )
        )


def read_tag(text: str) -> str:
    """The text before the first colon, Latin or Chinese, at most 40 characters."""
    return cut(text.replace("：", ":").partition(":")[0].strip(), 40) or "untitled"


@dataclass
class NameRouter(LocalRole[RouteRequest, Route]):
    """Gives each topic the relevance of its name."""

    relevance: Mapping[str, float]
    requests: list[RouteRequest] = field(default_factory=list)

    def call(self, request: RouteRequest) -> Answer[Route]:
        self.requests.append(request)
        found = {t.id: self.relevance[t.name] for t in request.topics if t.name in self.relevance}
        return Answer(Route(found, "" if found else "nothing like it"))


class PlainBriefWriter(LocalRole[BriefRequest, Brief]):
    """Keeps a topic's name; the brief is the name and the number of messages."""

    def call(self, request: BriefRequest) -> Answer[Brief]:
        return Answer(Brief(request.topic.name, f"{request.topic.name}, {len(request.messages)}"))


@dataclass
class FailingRole(LocalRole[Any, Any]):
    """Any role; it raises an error."""

    error: Exception = field(default_factory=lambda: RuntimeError("out of order"))
    asked: int = 0

    def call(self, request: Any) -> Answer[Any]:
        self.asked += 1
        raise self.error


@dataclass
class FixedRole(LocalRole[Any, Any]):
    """Any role; it answers with a fixed value, or with that of a function of the request."""

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
    """Roles that need no model: those given, fakes, and embedded ones over hashed words.

    The embedded roles also stand in for those that fail.
    """
    embedded = embedded_roles(HashingEmbedder(256))
    return (
        embedded.replace(RESPONDER, responder or ScriptedResponder())
        .replace(READER, reader or SteadyReader())
        .replace(SPLITTER, splitter or TaggedSplitter())
        .replace(ROUTER, router or embedded[ROUTER])
        .replace(BRIEF, brief or PlainBriefWriter())
        .replace(REWRITER, rewriter)
    )
