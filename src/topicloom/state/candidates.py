"""What a curation chooses from (spec 004, 6.2.1)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

SourceKind = Literal["lore", "narrative", "event", "topic"]


class Candidate(BaseModel):
    """Something that may be worth knowing for the reply, by its preview."""

    model_config = ConfigDict(frozen=True)

    id: str
    """Its id among the candidates: `lore_3`, `narrative_t12`."""
    kind: SourceKind
    """What kind of source it is from."""
    title: str = ""
    """What it is called, if it has a name: others may mention it by that."""
    preview: str
    """Its beginning, about 100 tokens, in one line."""
    score: float
    """How well it fits, 0 to 1, comparable between kinds."""
    tags: tuple[str, ...] = ()
    """What the source says of it."""
