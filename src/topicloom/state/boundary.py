"""What is asked about a message of which nobody can tell whether it begins a topic."""

from __future__ import annotations

from dataclasses import dataclass

from topicloom.state.session import Language


@dataclass(frozen=True, slots=True)
class BoundaryQuestion:
    """Does a message go on with the task that is open?

    It does when it is part of it: as its cause, its next step or by referring to it, in whatever
    words (spec 001, section 3, step 3).
    """

    summary: str
    """What went before: the newest queries of the open topic."""
    request: str
    """The new message, its references resolved."""
    anchor: str
    """The new message behind its context bridge, `Context: ...` and `Query: ...` on two lines."""
    prior: float
    """Probability by the screening that the message continues the topic, 0 to 1."""
    language: Language
    """Language of the conversation, for prompts."""
