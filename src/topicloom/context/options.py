"""What an application may say about one turn, as the graph's runtime context."""

from __future__ import annotations

from dataclasses import dataclass

from topicloom.state.changes import TopicChange


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """Passed as `graph.invoke(..., context=TurnOptions(...))`."""

    answer: bool = True
    """Whether a new user message is answered; False only records it."""
    keep_messages: int | None = None
    """Before answering, move everything into topics and keep this many messages in view. None
    to split only when the window fills."""
    changes: tuple[TopicChange, ...] = ()
    """Changes to topics that a review wants made. With these a turn needs no message."""
