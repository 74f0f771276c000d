"""The plan of a turn, made by a planner."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

TurnKind = Literal["state_edit", "narrative"]
TimeFocus = Literal["now", "past", "future"]


class DomainWeights(BaseModel, frozen=True):
    """Weights of the kinds of sources in the search, 0 to 1."""

    narrative: float = Field(default=0.5, ge=0, le=1)
    """The conversation: briefs, the archive, summaries."""
    lore: float = Field(default=0.5, ge=0, le=1)
    """The application's documents."""
    event: float = Field(default=0.5, ge=0, le=1)
    """Neighbours of the event in focus."""


class SearchIntent(BaseModel, frozen=True):
    """The search for what stands outside the conversation."""

    enabled: bool = True
    """False for no search, as for a state edit."""
    keywords: tuple[str, ...] = ()
    """Names of things and people, most telling first."""
    when: TimeFocus = "now"
    """The time that the message is about."""
    weights: DomainWeights = DomainWeights()


class TurnPlan(BaseModel, frozen=True):
    """The plan of a turn."""

    kind: TurnKind = "narrative"
    """`state_edit` if the message only wants the document changed."""
    focus: str | None = None
    """Anchor of the active event that the turn is about."""
    goal: str = ""
    """The goal of the reply, in a sentence."""
    template: str = "default"
    """The template that renders the skeleton."""
    search: SearchIntent = SearchIntent()
    edits: tuple[tuple[Any, ...], ...] = ()
    """Edits of the document that the planner is sure of: `("SET", "sword.count", 0)`."""
    reply: str = ""
    """A short reply to go with these edits; empty to have one made of them."""
