"""What an application's domain adds to a note: layers of context, and what a curation picked."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

SESSION_KINDS = frozenset({"narrative", "topic", "event"})
"""Kinds of sources that look through the session itself. What they find may be purged, so that a
receipt says which of it was picked, and nothing of what it says."""


class CuratedEntry(BaseModel, frozen=True):
    """Something picked, with its full text."""

    id: str
    """Id of the candidate, its kind in front: `lore_3`."""
    kind: str
    """The kind of its source: lore, narrative, event, topic, or one of the application's own."""
    knowledge: bool = False
    """True if it says how things are, not what happened."""
    title: str = ""
    text: str
    """All of it."""

    @property
    def item(self) -> CuratedItem:
        """The entry as a receipt has it."""
        title = "" if self.kind in SESSION_KINDS else self.title
        return CuratedItem(id=self.id, kind=self.kind, title=title)


class CuratedItem(BaseModel, frozen=True):
    """Something picked, as a receipt keeps it: where it is, not what it says."""

    id: str
    """Id of the candidate: `lore_3`, `topic_t2`."""
    kind: str
    """The kind of its source."""
    title: str = ""
    """Its title in the application's own data; "" for what the session itself holds."""


class Layer(BaseModel, frozen=True):
    """A layer of context that the application's domain adds to a prompt, as a note keeps it.

    A deterministic layer is the skeleton: facts that are exact. It is entered whole once, and later
    only those of its elements that changed. A probabilistic layer holds what a curation picked.
    """

    kind: Literal["deterministic", "probabilistic"]
    """Exact, or picked by relevance."""
    text: str = ""
    """Of a skeleton: its elements."""
    since: str = ""
    """Of a skeleton that gives changes only: short id of the message behind which the skeleton
    before it stands."""
    entries: tuple[CuratedEntry, ...] = ()
    """Of a curation: what was picked, best first."""
    rationale: str = ""
    """Of a curation: why."""
    model: str = ""
    """Of a curation: who picked."""
