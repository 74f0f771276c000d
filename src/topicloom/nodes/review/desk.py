"""What the steps of a review close over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from topicloom.index.embedder import Embedder
from topicloom.nodes.review.door import SessionDoor
from topicloom.nodes.review.likeness import TopicSums
from topicloom.nodes.workspace import Workspaces
from topicloom.roles.registry import Roles
from topicloom.state.review import ReviewPolicy
from topicloom.storage.sessions import SessionStore


@dataclass(frozen=True, slots=True)
class ReviewDesk:
    """The collaborators of a review."""

    door: SessionDoor
    workspaces: Workspaces
    roles: Roles
    embedder: Embedder
    clock: Callable[[], datetime]
    policy: ReviewPolicy
    topic_tokens: int
    """What a topic's messages may come to."""
    sums: TopicSums = field(default_factory=TopicSums)

    def store(self, session: str) -> SessionStore:
        """The storage of a session."""
        return self.workspaces.open(session, self.door.graph.store).store
