"""The channels of the review graph, and its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel
from typing_extensions import TypedDict

from topicloom.state.changes import TopicChange
from topicloom.state.channels import append_or_reset
from topicloom.state.receipt import Call


class ReviewInput(TypedDict, total=False):
    """The input of a review."""

    thread: str
    now: str
    """The time to go by, ISO 8601 with offset; that of the clock if not given."""
    dry_run: bool
    """True to change nothing."""


class ReviewState(ReviewInput, total=False):
    """State of the review graph, JSON-native; what goes into the report is described there.

    Dumped are a `Session`, `TopicStats`, `Assessment`s (each with its `topic`), `TopicPair`s,
    `TopicChange`s and `Call`s.
    """

    session: dict[str, Any]
    repaired: list[str]
    looks: list[dict[str, Any]]
    due: list[str]
    assessed: Annotated[list[dict[str, Any]], append_or_reset]
    pairs: list[dict[str, Any]]
    near: dict[str, float]
    """Nearness of topics to the discussion."""
    changes: list[dict[str, Any]]
    told: list[str]
    changed: list[str]
    refused: dict[str, str]
    troubles: Annotated[list[str], append_or_reset]
    calls: Annotated[list[dict[str, Any]], append_or_reset]


class AssessTask(TypedDict):
    """The input of one assessment."""

    session: dict[str, Any]
    topic: str
    uses: int
    """How often it was used lately."""


class ReviewReport(BaseModel, frozen=True):
    """The result of a review, with its reasons."""

    session: str
    """The thread."""
    now: str
    """The time that it went by."""
    dry_run: bool
    """True if nothing was changed."""
    repaired: tuple[str, ...] = ()
    """What it put right at first, in words: merged topics and moved messages."""
    changes: tuple[TopicChange, ...] = ()
    """The changes that it decided."""
    told: tuple[str, ...] = ()
    """A description of each of them."""
    changed: tuple[str, ...] = ()
    """Topics that they were made to."""
    refused: dict[str, str] = {}
    """Topics that they were not made to, and why."""
    troubles: tuple[str, ...] = ()
    """What is damaged or cannot be read."""
    calls: tuple[Call, ...] = ()
    """Every call of a role."""

    @property
    def archived(self) -> tuple[str, ...]:
        """Topics that were archived, or would be."""
        return tuple(c.topic for c in self._applied if c.archive)

    @property
    def merged(self) -> tuple[tuple[str, str], ...]:
        """Topics that were merged into others, or would be: the one that is gone first."""
        return tuple((c.absorbs, c.topic) for c in self._applied if c.absorbs is not None)

    @property
    def reviewed(self) -> tuple[str, ...]:
        """Topics that were summarized anew, or would be."""
        return tuple(c.topic for c in self._applied if c.reviewed)

    @property
    def _applied(self) -> tuple[TopicChange, ...]:
        return tuple(c for c in self.changes if self.dry_run or c.topic in self.changed)


def build_report(state: Mapping[str, Any]) -> ReviewReport:
    """The report of a review that is over."""
    known = {k: v for k, v in state.items() if k in ReviewReport.model_fields and v is not None}
    return ReviewReport.model_validate(
        {"now": "", "dry_run": False, **known, "session": state["thread"]}
    )
