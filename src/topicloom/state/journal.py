"""The journal of edits of an application's document."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class JournalEntry(BaseModel, frozen=True):
    """Edits that were made together."""

    turn: int
    """Number of the turn, from 1."""
    message: str
    """Short id of the user message that called for them."""
    edits: tuple[tuple[Any, ...], ...]
    """The edits, in order."""
    before: str
    """Digest of the document before them. Another one than the entry before has after: the
    application itself changed the document in between."""
    after: str
    """Digest of the document after them."""
