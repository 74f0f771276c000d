"""The report of a review."""

from __future__ import annotations

from pydantic import BaseModel

from topicloom.state.changes import TopicChange
from topicloom.state.receipt import Call


class ReviewReport(BaseModel, frozen=True):
    """The result of a review, with its reasons."""

    session: str
    """The thread."""
    now: str
    """The time that it went by."""
    dry_run: bool
    """True if nothing was changed."""
    regrouped: tuple[str, ...] = ()
    """What it put right first, in words: merged topics and moved messages."""
    changes: tuple[TopicChange, ...] = ()
    """The changes that it decided."""
    told: tuple[str, ...] = ()
    """A description of each of them."""
    changed: tuple[str, ...] = ()
    """Topics that they were made to."""
    refused: dict[str, str] = {}
    """Topics that they were not made to, and why."""
    troubles: tuple[str, ...] = ()
    """Topics that are damaged or cannot be read, in words."""
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
