"""Layers of context that the application's domain adds to a prompt.

A deterministic layer is the skeleton: facts that are exact. It is entered whole once, and later
only those of its elements that changed. A probabilistic layer holds what a curation picked.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

SourceKind = Literal["lore", "narrative", "event", "topic"]


class CuratedEntry(BaseModel, frozen=True):
    """Something picked, with its full text."""

    id: str
    """Id of the candidate."""
    kind: SourceKind
    """The kind of its source."""
    title: str = ""
    text: str
    """All of it."""


class Layer(BaseModel, frozen=True):
    """One layer, as a note of the ledger keeps it."""

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
