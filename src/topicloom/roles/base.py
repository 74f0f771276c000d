"""The contract of roles: a request, an answer with its cost, and a role's description of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar

from topicloom.background import asubmit_daemon
from topicloom.search.embedder import Embedder

if TYPE_CHECKING:
    from topicloom.roles.chat import Chat

RoleName = str
"""Name of a role, as `registry.ROLES` has it."""

P = TypeVar("P")
Q = TypeVar("Q")
Q_contra = TypeVar("Q_contra", contravariant=True)
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a call."""

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
    """A role's answer, with what it cost and what had to be repaired."""

    value: A_co
    usage: Usage | None = None
    """None for embedded roles."""
    remarks: tuple[str, ...] = ()
    """Repairs of the answer, a line each."""


class Role(Protocol[Q_contra, A_co]):
    """Something that answers one kind of request. It may raise or take too long."""

    @property
    def model(self) -> str:
        """Name of the model that plays it, for receipts."""
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


class LocalRole(Generic[Q, A]):
    """Base of roles that compute: the async form runs the sync one in a thread."""

    model: str = "embedded"
    deadline: float | None = None

    def call(self, request: Q) -> Answer[A]:
        """Answer the request."""
        raise NotImplementedError

    async def acall(self, request: Q) -> Answer[A]:
        """Answer the request in a thread of its own, which nothing waits for past the deadline."""
        return await asubmit_daemon(partial(self.call, request))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSpec(Generic[P]):
    """A role's description of itself, at the end of its file; `P` is its Protocol."""

    name: RoleName
    """Its module and its prompts go by it as well."""
    purpose: str
    """Its purpose in a sentence, for the documentation."""
    answers: type
    """Type of its answers, by whatever model."""
    items: type = object
    """Type of the items, if an answer is a tuple."""
    model: Literal["strong", "cheap"] = "cheap"
    """The model that plays it if none is named for it."""
    answer_tokens: int | None = None
    """Tokens of an answer at most, well above what its parser keeps; None for no limit."""
    played: Literal["always", "if named", "with a cheap model", "with a domain"] = "always"
    """When a model plays it: if there is any, if one is named for this role, if there is a cheap
    one, or if the application has a domain."""
    chat: Callable[[Chat], P]
    """Makes the form that a chat model plays."""
    named: Mapping[str, Callable[[str, float], P]] = field(default_factory=dict)
    """Makes other forms, of a model's name and a deadline in seconds; by what the name of such a
    model begins with."""
    embedded: Callable[[Embedder], P] | None = None
    """Makes the form that needs no model; None if there is none."""
    without: str = ""
    """The turn's way on if the role fails, in a few words; empty if the embedded form stands in."""

    def accepts(self, value: object) -> bool:
        """True if the value is what the role answers with: roles may be an application's code."""
        if not isinstance(value, self.answers):
            return False
        return not isinstance(value, tuple) or all(isinstance(v, self.items) for v in value)
