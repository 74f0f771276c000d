"""What a planner decides about a turn (spec 004, 3.2)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

TurnKind = Literal["state_edit", "narrative"]


class DomainWeights(BaseModel):
    """How much each kind of source counts in the search, 0 to 1."""

    model_config = ConfigDict(frozen=True)

    narrative: float = Field(default=0.5, ge=0, le=1)
    """What was told: briefs, the archive, summaries."""
    lore: float = Field(default=0.5, ge=0, le=1)
    """The application's documents."""
    event: float = Field(default=0.5, ge=0, le=1)
    """Neighbours of the event in focus."""


class SearchIntent(BaseModel):
    """What to look for beside the conversation."""

    model_config = ConfigDict(frozen=True)

    enabled: bool = True
    """Whether to look at all; a state edit does not."""
    keywords: tuple[str, ...] = ()
    """Names of things and people, most telling first."""
    when: Literal["now", "past", "future"] = "now"
    """What time the message is about."""
    weights: DomainWeights = DomainWeights()
    """How much each kind of source counts."""


class TurnPlan(BaseModel):
    """The plan of a turn."""

    model_config = ConfigDict(frozen=True)

    kind: TurnKind = "narrative"
    """Whether the message only wants the document changed."""
    focus: str | None = None
    """Anchor of the active event that the turn is about."""
    goal: str = ""
    """What the reply is to achieve, in a sentence."""
    template: str = "default"
    """Which template renders the skeleton."""
    search: SearchIntent = SearchIntent()
    """What the curation looks for."""
    edits: tuple[tuple[Any, ...], ...] = ()
    """Edits of the document that the planner is sure of: `("SET", "sword.count", 0)`."""
    reply: str = ""
    """A short reply to go with these edits; empty to have one made of them."""
