"""The settings of the boundary adsorber."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from topicloom.errors import ConfigurationError
from topicloom.state.language import Language

_SPEC: dict[str, Any] = {
    "screening": "cosine",
    "low": 0.40,
    "high": 0.75,
    "anchor": "context",
    "filler_tokens": 5,
}
"""The original design to the letter. Its thresholds belong to another encoder: with the one
that ships, they fail on every set that they were measured on."""


class AdsorberPolicy(BaseModel, frozen=True, extra="forbid"):
    """The settings of the funnel.

    The preset `trained` screens by a model that was trained on conversations with marked topics;
    its score is a probability. `spec` screens by the cosine of an anchor to the topic's centroid.
    """

    preset: Literal["trained", "spec"] = "trained"
    """Source of the settings below that are not given."""
    screening: Literal["trained", "cosine"] = "trained"
    """The detector that rates messages."""
    low: float = 0.3
    """A topic begins below this score. If it is not set and the role `arbiter` has a model, .05."""
    high: float = 0.7
    """The open topic continues above this score. Between the two an arbiter decides; without one,
    the likelier answer stands."""
    granularity: Granularity = "auto"
    """Size of topics: `fine` for steps of one errand, `coarse` for topics that last."""
    anchor: Literal["query", "context"] = "query"
    """The text that is compared: the message, or (`context`) the beginning of the previous reply
    and the message."""
    memory: int = Field(default=3, ge=1)
    """Queries of the open topic that an arbiter is shown."""
    questions: int = Field(default=32, ge=0)
    """Doubtful messages of one split that an arbiter is asked about at most, in one call."""
    filler_tokens: int = Field(default=3, ge=0)
    """A message of fewer tokens (words, CJK characters) always continues the open topic."""
    pause_hours: float = Field(default=6.0, gt=0)
    """Hours of silence after which a topic is likelier to begin."""
    pause_odds: float = Field(default=4.0, ge=1)
    """The factor by which such a pause raises the odds of a new topic."""

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, given: Any) -> Any:
        spec = isinstance(given, dict) and given.get("preset") == "spec"
        return {**_SPEC, **given} if spec else given

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ConfigurationError(
                "low {low} lies over high {high}: exchange them", low=self.low, high=self.high
            )
        return self


Granularity = Literal["auto", "fine", "coarse"]
"""How fine topics are: `fine` for steps of one errand, `coarse` for topics that last, `auto` for
the best compromise over every kind of dialogue that the model was trained on."""


@dataclass(frozen=True, slots=True)
class BoundaryQuestion:
    """A question whether a message goes on with the task that is open.

    It does when it is part of it: as its cause, its next step or by referring to it, in whatever
    words.
    """

    summary: str
    """The newest queries of the open topic."""
    request: str
    """The new message, its references resolved."""
    reply: str
    """The reply before the new message, which may refer to it."""
    prior: float
    """Probability by the screening that the message continues the topic, 0 to 1."""
    language: Language
    """Language of the conversation, for prompts."""
