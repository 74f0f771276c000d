"""What a model does here: one Protocol a role, with its request and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

import numpy as np
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.tools import BaseTool
from numpy.typing import NDArray

from topicloom.state.blocks import LogicalBlock
from topicloom.state.boundary import BoundaryQuestion
from topicloom.state.facts import Claim, Fact
from topicloom.state.recall import Reading
from topicloom.state.records import Record
from topicloom.state.review import Assessment
from topicloom.state.session import Language
from topicloom.state.splitting import Assignment
from topicloom.state.topics import Topic

RoleName = Literal[
    "splitter",
    "reader",
    "router",
    "brief",
    "responder",
    "rewriter",
    "arbiter",
    "reflector",
    "reviewer",
    "merger",
    "planner",
    "selector",
]

Q = TypeVar("Q")
Q_contra = TypeVar("Q_contra", contravariant=True)
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call cost."""

    model: str
    """Name of the model."""
    input_tokens: int
    """Prompt tokens, reported or estimated."""
    output_tokens: int
    """Answer tokens, reported or estimated."""
    cached_tokens: int = 0
    """Prompt tokens that came from the provider's cache."""
    repeated: float | None = None
    """Share of the prompt that an earlier one of the same window began with."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[A_co]):
    """A role's answer, with what it cost and what had to be mended."""

    value: A_co
    usage: Usage | None = None
    """None for embedded roles."""
    remarks: tuple[str, ...] = ()
    """What had to be mended in the answer."""


class Role(Protocol[Q_contra, A_co]):
    """Something that answers one kind of request. It may raise or take too long."""

    @property
    def model(self) -> str:
        """Name of who plays it, for receipts."""
        ...

    @property
    def deadline(self) -> float | None:
        """Seconds after which the turn goes on without it; None for no limit."""
        ...

    def call(self, request: Q_contra) -> Answer[A_co]:
        """Answer the request."""
        ...

    async def acall(self, request: Q_contra) -> Answer[A_co]:
        """Answer the request without blocking the event loop."""
        ...


class Local(Generic[Q, A]):
    """Base of roles that compute: the async form runs the sync one in a thread."""

    model: str = "embedded"
    deadline: float | None = None

    def call(self, request: Q) -> Answer[A]:
        """Answer the request."""
        raise NotImplementedError

    async def acall(self, request: Q) -> Answer[A]:
        """Answer the request in a worker thread."""
        return await asyncio.to_thread(self.call, request)


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One topic window to read."""

    session: str
    """The session, by which prompts of the same window are compared."""
    topic: Topic
    """The topic."""
    records: Sequence[Record]
    """Its messages, in order."""
    tail: Sequence[Record]
    """The messages in view of the main window and some before them, the newest last."""
    query: str
    """What to answer, with references resolved."""
    language: Language
    weights: Mapping[str, float] = field(default_factory=dict)
    """Worth of messages for the query by the local index, by short id, 0 to 1."""
    prior: float = 0.0
    """Relevance of the topic by the local index, 0 to 1."""


class Reader(Role[ReadRequest, Reading], Protocol):
    """Reads a whole topic and hands over a score, ids worth quoting and a summary."""


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """Blocks to assign to topics."""

    session: str
    blocks: Sequence[LogicalBlock]
    """The blocks, in order."""
    segments: Sequence[int]
    """For each block, the number of the adsorber's segment that it lies in."""
    topics: Sequence[Topic]
    """Open topics that a block may go to, under their full names (`House / Kitchen`)."""
    affinity: Mapping[str, NDArray[np.float32]]
    """By topic id, how near its messages are to each block [blocks]."""
    active: frozenset[str]
    """Ids of those that are active."""
    previous: str | None
    """Id of the topic that the messages before the first block went to."""
    language: Language
    dividing: Topic | None = None
    """The topic that all of the blocks are of, when it is to be divided into sub-topics."""


class Splitter(Role[SplitRequest, tuple[Assignment, ...]], Protocol):
    """Assigns messages to existing or new topics."""


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """A search for topics."""

    session: str
    query: str
    """What to look for."""
    tail: Sequence[Record]
    """The newest messages."""
    topics: Sequence[Topic]
    """Candidates: recent ones first, then those that the index found."""
    priors: dict[str, float]
    """What the local index says of each, 0 to 1."""
    when: str | None
    """Days that the candidates lie in, for the model to read; None for any time."""
    language: Language


@dataclass(frozen=True, slots=True)
class Route:
    """What a router found."""

    relevance: dict[str, float]
    """Relevance by topic id, 0 to 1."""
    reason: str = ""
    """Why nothing was found."""


class Router(Role[RouteRequest, Route], Protocol):
    """Finds the topics that a query means, from their briefs."""


@dataclass(frozen=True, slots=True)
class BriefRequest:
    """A topic whose brief has to be written again."""

    session: str
    topic: Topic
    """The topic with its former name and brief."""
    records: Sequence[Record]
    """Its messages, in order."""
    language: Language


@dataclass(frozen=True, slots=True)
class Brief:
    """A topic's name and brief."""

    name: str
    text: str
    """About 1 KB."""


class BriefWriter(Role[BriefRequest, Brief], Protocol):
    """Writes the brief by which a topic is recognised."""


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """A message whose references have to be resolved."""

    session: str
    text: str
    tail: Sequence[Record]
    """The messages before it."""
    language: Language


class Rewriter(Role[RewriteRequest, str], Protocol):
    """Rewrites a message so that it stands by itself."""


class Arbiter(Role[BoundaryQuestion, float], Protocol):
    """Says how likely a message, of which screening left it in doubt, continues the topic."""


@dataclass(frozen=True, slots=True)
class ReflectRequest:
    """A stretch of conversation to reflect upon."""

    session: str
    records: Sequence[Record]
    """What was really said, in order."""
    facts: Sequence[Fact]
    """What is known about the user, in order; a new fact may take the place of one."""
    language: Language


@dataclass(frozen=True, slots=True)
class Reflected:
    """What a reflector found."""

    claims: tuple[Claim, ...]
    """Facts about the user, in order; not checked yet."""


class Reflector(Role[ReflectRequest, Reflected], Protocol):
    """Finds what is worth knowing about the user for good."""


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """A topic to review."""

    session: str
    topic: Topic
    """The topic with its former name, brief and summary."""
    records: Sequence[Record]
    """Its messages, in order; for two topics that may be merged, those of both."""
    language: Language
    uses: int = 0
    """How often it was quoted lately, and how many topics refer to it."""


class Reviewer(Role[ReviewRequest, Assessment], Protocol):
    """Sums a topic up and says how much it matters (spec 000, 4.8)."""


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Two topics that may be about the same thing."""

    session: str
    topics: tuple[Topic, Topic]
    """The topics, with briefs and summaries."""
    likeness: float
    """How alike the index finds them: a cosine."""
    language: Language


class Merger(Role[MergeRequest, float], Protocol):
    """Says how likely two topics are about the same thing."""


@dataclass(frozen=True, slots=True)
class ReplyRequest:
    """The main window, laid out."""

    session: str
    messages: Sequence[BaseMessage]
    """The prompt: system message first, the message to answer (or tool results) last."""
    tools: Sequence[BaseTool]
    """Tools that may be called; empty when it has to answer in words."""
    query: str
    """What to answer."""
    sources: Sequence[Record]
    """Originals that the prompt quotes or shows, those recalled last first: what an embedded
    responder answers from."""
    language: Language


class Responder(Protocol):
    """Writes the reply, as a stream of chunks; the last ones may carry tool calls and usage."""

    @property
    def model(self) -> str:
        """Name for receipts."""
        ...

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """The reply."""
        ...

    def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """The reply, without blocking the event loop."""
        ...
