"""Roles of a turn in an application that has a domain: planner and selector (spec 004)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from topicloom.roles.base import Role
from topicloom.state.candidates import Candidate
from topicloom.state.plan import Plan
from topicloom.state.records import Record
from topicloom.state.session import Language


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A message to plan for."""

    session: str
    query: str
    """The message, with references resolved."""
    tail: Sequence[Record]
    """The messages before it, oldest first."""
    document: dict[str, Any]
    """The application's document."""
    events: Sequence[Mapping[str, Any]]
    """The events of the document that are active; the focus has to be one of them."""
    templates: Sequence[str]
    """Names of the templates there are."""
    previous: Plan | None
    """The plan of the turn before."""
    language: Language


class Planner(Role[PlanRequest, Plan], Protocol):
    """Says what kind of turn it is, what it is about and what to look for."""


@dataclass(frozen=True, slots=True)
class SelectRequest:
    """Candidates to choose from."""

    session: str
    query: str
    """What to answer."""
    tail: Sequence[Record]
    """The newest messages, oldest first."""
    plan: Plan
    """The plan of the turn."""
    candidates: Sequence[Candidate]
    """Best first."""
    limit: int
    """How many may be chosen."""
    language: Language


@dataclass(frozen=True, slots=True)
class Selection:
    """What was chosen."""

    ids: tuple[str, ...]
    """Ids of candidates, best first."""
    rationale: str = ""
    """Why, in a sentence."""


class Selector(Role[SelectRequest, Selection], Protocol):
    """Picks the few candidates that are worth the main model's reading."""
