"""What the steps of a review close over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from langchain_core.runnables import Runnable, RunnableLambda

from topicloom.index.embedder import Embedder
from topicloom.nodes.review.door import SessionDoor, Sight
from topicloom.nodes.review.likeness import TopicSums
from topicloom.nodes.step import Update
from topicloom.nodes.workspace import Workspaces
from topicloom.roles.calls import Step, arun, run
from topicloom.roles.team import Roles
from topicloom.state.review import ReviewPolicy
from topicloom.state.review_channels import ReviewState
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


def with_sight(
    step: Callable[[ReviewState, Sight], Step[Update]], desk: ReviewDesk, name: str
) -> Runnable[ReviewState, Update]:
    """A node that works on the session as it is now; beside the event loop when asynchronous."""

    def sync(state: ReviewState) -> Update:
        return run(step(state, desk.door.look(state["thread"])))

    async def asynchronous(state: ReviewState) -> Update:
        return await arun(step(state, await desk.door.alook(state["thread"])))

    return RunnableLambda(sync, asynchronous, name=name)
