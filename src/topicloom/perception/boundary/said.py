"""One message, as far as telling topics apart needs it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a conversation."""

    role: str | None
    """"user", "assistant", "system" or the like; None where nobody plays a role."""
    speaker: str | None
    """Name of who said it, where it is known."""
    text: str
    """What was said."""
    hours: float | None
    """When, in hours on any clock of the conversation; None where it is not known."""
