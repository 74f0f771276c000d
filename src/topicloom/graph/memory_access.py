"""Two ways to a session for `Memory`: through its graph, or through its storage alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from topicloom.effects import Step
from topicloom.graph.session import CompiledSessionGraph
from topicloom.index.session_index import SessionIndex
from topicloom.review.session_client import SessionClient
from topicloom.state.session import Session
from topicloom.storage.lines import catch_up, find_newest
from topicloom.storage.sessions import SessionStore


class OpenSession(NamedTuple):
    """A session as it is now."""

    session: Session
    store: SessionStore
    whole: SessionIndex
    """The index of all its messages."""


@dataclass(frozen=True, slots=True)
class StorageAccess:
    """Through its storage: as the turn that ended last left it."""

    thread: str
    store: SessionStore
    whole: SessionIndex
    facts: BaseStore | None

    def open(self) -> Step[OpenSession]:
        """Within a step: the session."""
        yield from ()
        session = catch_up(self.store, find_newest(self.store, self.thread))
        return OpenSession(session, self.store, self.whole)


@dataclass(frozen=True, slots=True)
class GraphAccess:
    """Through its graph: as the checkpoint has it, behind what other writers did since."""

    graph: CompiledSessionGraph
    config: RunnableConfig

    @property
    def thread(self) -> str:
        return str(self.config["configurable"]["thread_id"])

    @property
    def facts(self) -> BaseStore | None:
        return self.graph.store

    def open(self) -> Step[OpenSession]:
        """Within a step: the session."""
        session, _ = yield from SessionClient(self.graph).read(self.config)
        workspace = self.graph.builder.workspaces.open(session.id, self.graph.store)
        if "checkpoint_id" not in self.config["configurable"]:
            session = catch_up(workspace.store, session)
        return OpenSession(session, workspace.store, workspace.whole)


Access = StorageAccess | GraphAccess
"""A way to a session."""
