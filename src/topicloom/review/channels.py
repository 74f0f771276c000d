"""The channels of the review graph, and the report that they come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from pydantic import BaseModel, ConfigDict

from topicloom.state.changes import TopicChange
from topicloom.state.channels import append_or_reset
from topicloom.state.receipt import Call


class ReviewInput(TypedDict, total=False):
    """What a review is started with."""

    thread: str
    """The session."""
    now: str
    """The time to go by, ISO 8601 with offset; that of the clock if not given."""
    dry_run: bool
    """Whether nothing is changed."""


class ReviewState(ReviewInput, total=False):
    """State of the review graph, JSON-native."""

    session: dict[str, Any]
    """The session as it was looked at, a dumped `Session`."""
    looks: list[dict[str, Any]]
    """Dumped `Look`s."""
    due: list[str]
    """Ids of the topics to assess."""
    assessed: Annotated[list[dict[str, Any]], append_or_reset]
    """Dumped `Assessment`s, each with its `topic`."""
    pairs: list[dict[str, Any]]
    """Dumped `Pair`s."""
    near: dict[str, float]
    """How near topics are to what is being talked about."""
    changes: list[dict[str, Any]]
    """Dumped `TopicChange`s."""
    told: list[str]
    """What each of them does, in words."""
    changed: list[str]
    """Topics that changes were made to."""
    refused: dict[str, str]
    """Topics that changes were not made to, and why."""
    filed: list[str]
    """Topics whose messages went to the archive or came back."""
    troubles: Annotated[list[str], append_or_reset]
    """What was found damaged or could not be read."""
    calls: Annotated[list[dict[str, Any]], append_or_reset]
    """Dumped `Call`s."""


class AssessTask(TypedDict):
    """What one assessment is sent."""

    session: dict[str, Any]
    """The session as it was looked at."""
    topic: str
    """Id of the topic."""
    uses: int
    """How often it was used lately."""


class ReviewReport(BaseModel):
    """What a review did, and why."""

    model_config = ConfigDict(frozen=True)

    session: str
    """The thread."""
    now: str
    """The time that it went by."""
    dry_run: bool
    """Whether nothing was changed."""
    changes: tuple[TopicChange, ...] = ()
    """What it wanted changed."""
    told: tuple[str, ...] = ()
    """What each of these does, in words."""
    changed: tuple[str, ...] = ()
    """Topics that they were made to."""
    refused: dict[str, str] = {}
    """Topics that they were not made to, and why."""
    filed: tuple[str, ...] = ()
    """Topics whose messages went to the archive or came back."""
    troubles: tuple[str, ...] = ()
    """What was found damaged or could not be read."""
    calls: tuple[Call, ...] = ()
    """Every call of a role."""

    @property
    def archived(self) -> tuple[str, ...]:
        """Topics that were put away, or would be."""
        return tuple(c.topic for c in self._made if c.archive)

    @property
    def merged(self) -> tuple[tuple[str, str], ...]:
        """Topics that were merged into others, or would be: the one that is gone first."""
        return tuple((c.absorbs, c.topic) for c in self._made if c.absorbs is not None)

    @property
    def reviewed(self) -> tuple[str, ...]:
        """Topics that were summed up anew, or would be."""
        return tuple(c.topic for c in self._made if c.reviewed)

    @property
    def _made(self) -> tuple[TopicChange, ...]:
        return tuple(c for c in self.changes if self.dry_run or c.topic in self.changed)


def build_report(state: Mapping[str, Any]) -> ReviewReport:
    """The report of a review that is over."""
    return ReviewReport(
        session=state["thread"],
        now=state.get("now", ""),
        dry_run=state.get("dry_run", False),
        changes=tuple(TopicChange.model_validate(c) for c in state.get("changes", ())),
        told=tuple(state.get("told", ())),
        changed=tuple(state.get("changed", ())),
        refused=dict(state.get("refused", {})),
        filed=tuple(state.get("filed", ())),
        troubles=tuple(state.get("troubles") or ()),
        calls=tuple(Call.model_validate(c) for c in state.get("calls") or ()),
    )
