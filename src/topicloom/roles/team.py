"""Who plays which role in a session."""

from __future__ import annotations

from dataclasses import dataclass

from topicloom.roles.base import (
    Arbiter,
    BriefWriter,
    Merger,
    Reader,
    Reflector,
    Responder,
    Reviewer,
    Rewriter,
    Router,
    Splitter,
)
from topicloom.roles.planning import Planner, Selector


@dataclass(frozen=True, slots=True)
class Roles:
    """The models at work in a session."""

    responder: Responder
    reader: Reader
    splitter: Splitter
    router: Router
    brief: BriefWriter
    reflector: Reflector
    reviewer: Reviewer
    merger: Merger
    fallback: Fallback
    """What stands in where one of them fails."""
    rewriter: Rewriter | None = None
    """A gateway that resolves references; none by default."""
    arbiter: Arbiter | None = None
    """Decides where the boundary adsorber is in doubt; None for its own likelier answer."""
    planner: Planner | None = None
    """Plans turns, where the application has a domain; None for plain conversation."""
    selector: Selector | None = None
    """Picks what else is worth knowing, likewise."""

    @property
    def reads_by_index(self) -> bool:
        """True if the reader only hands on what the local index finds: reading costs nothing."""
        return getattr(self.reader, "by_index", False)

    @property
    def replies_by_index(self) -> bool:
        """True if no model reads the prompt: the responder takes what is nearest to the query."""
        return getattr(self.responder, "by_index", False)


@dataclass(frozen=True, slots=True)
class Fallback:
    """Deterministic stand-ins; they need no network and always answer."""

    reader: Reader
    splitter: Splitter
    router: Router
    brief: BriefWriter
    reflector: Reflector
    reviewer: Reviewer
    planner: Planner | None = None
