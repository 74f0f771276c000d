"""Two ways to a session for `Memory`: through its graph, or through its storage alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import NamedTuple

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from topicloom.effects import Step, either
from topicloom.errors import ConflictError, InputError
from topicloom.graph.compiled import CompiledSessionGraph
from topicloom.memory.freed_pages import rewrite_files
from topicloom.memory.purge import adelete_session, delete_session, purge_messages
from topicloom.memory.stored import Graph, find_deps, is_part
from topicloom.nodes.main_prompt import lay_out_prompt
from topicloom.nodes.runs import name_thread
from topicloom.reflection.store import ReflectionStore
from topicloom.review.session_client import SessionClient
from topicloom.state.changes import TopicChange
from topicloom.state.persons import Person, check_person, read_person
from topicloom.state.recall import parse_message_number
from topicloom.state.receipt import Receipt
from topicloom.state.session import Session, Turn
from topicloom.storage.purging import PurgePlan
from topicloom.storage.sessions import SessionStore
from topicloom.storage.topic_changes import make_changes
from topicloom.storage.writers import catch_up, come_behind, find_newest, write_tip
from topicloom.telemetry.report import Telemetry
from topicloom.texts import FilledText
from topicloom.topics.session_index import SessionIndex


class OpenSession(NamedTuple):
    """A session as it is now."""

    session: Session
    store: SessionStore
    full_index: SessionIndex
    """The index of all its messages."""


@dataclass(frozen=True, slots=True)
class StorageAccess:
    """Through its storage: as the turn that ended last left it."""

    thread: str
    store: SessionStore
    full_index: SessionIndex
    facts: ReflectionStore
    clock: Callable[[], datetime]
    telemetry: Telemetry
    graph: Graph | None = None
    """The agent with `TopicMiddleware` whose session it is, if one was given."""
    person: Person | None = None
    """The person who asks for it; None if the caller names nobody."""

    def open(self) -> Step[OpenSession]:
        """Within a step: the session; raises `OtherPersonError` if it is another's."""
        yield from ()
        self.store.renew()
        session = catch_up(self.store, find_newest(self.store, self.thread))
        check_person(session, self.person)
        return OpenSession(session, self.store, self.full_index)

    def lay_out(self) -> Step[list[BaseMessage]]:
        """Within a step: raises InputError, for only a graph knows how prompts are laid out."""
        yield from ()
        raise InputError("only a graph can show prompts: use Memory.of(graph, config)")

    def change(self, changes: Sequence[TopicChange]) -> Step[Turn]:
        """Within a step: make changes by a turn of its own, as another writer beside the graph.

        The graph takes it over with its next turn, or at the end of the one that goes on.

        Raises:
            ConflictError: Others end turns all the time.
        """
        session, store, _ = yield from self.open()
        started = session.place(self.clock()).isoformat()
        close = partial(self._take_turn, changes, started)
        _, turn, alone = write_tip(
            store, session, close, lambda now, others: come_behind(store, now, others)[0]
        )
        if not alone:
            raise ConflictError(
                "others change session {session!r} all the time: try again", session=self.thread
            )
        return turn

    def _take_turn(
        self, changes: Sequence[TopicChange], started: str, before: Session
    ) -> tuple[Session, Turn]:
        """The session after a turn that makes the changes; as it was if none of them fits."""
        number, newest = before.turn + 1, before.count
        turn = Turn(number=number, first=newest, user=newest, query="", started=started)
        session, turn = make_changes(self.store, before, turn, changes)
        if not turn.changed:
            return before, turn
        receipt = Receipt(
            turn=number,
            user=f"m{newest}",
            started=started,
            seconds=0,
            scores={},
            active=tuple(session.active),
            events=turn.events,
        )
        return self.store.add_receipt(session.model_copy(update={"turn": number}), receipt), turn

    def after_change(self) -> StorageAccess:
        """The way to the session after a change."""
        return self

    def purge(self, plan: PurgePlan, first: Callable[[], object]) -> Step[tuple[str, ...]]:
        """Within a step: remove messages for good; returns where they may still be found."""
        _, store, _ = yield from self.open()
        first()
        store.purge(plan)
        left = (
            "the checkpoints of thread {thread!r}, until Memory.of(graph, config).forget removes it"
            " for good"
            if self.graph is None
            else "the checkpoints of thread {thread!r}: the agent's state shows it until its next"
            " turn, and older ones until you remove them by the checkpointer's means"
        )
        pages = yield from rewrite_files(self.facts.store)
        return (FilledText(left, thread=self.thread), *pages)

    def delete(self) -> Step[None]:
        """Within a step: delete the session; its checkpoints too, where an agent leads to them."""
        if self.graph is not None:
            yield from _delete(self.graph, self.thread)
            return
        with self.telemetry.watch_memory("delete_memory_store", self.thread):
            self.store.log.delete()
            self.facts.delete(self.thread)
            yield from rewrite_files(self.facts.store)


@dataclass(frozen=True, slots=True)
class GraphAccess:
    """Through its graph: as the checkpoint has it, with what other writers did since."""

    graph: CompiledSessionGraph
    config: RunnableConfig

    @property
    def thread(self) -> str:
        return str(self.config["configurable"]["thread_id"])

    @property
    def facts(self) -> ReflectionStore:
        return open_facts(self.graph.store)

    @property
    def clock(self) -> Callable[[], datetime]:
        return self.graph.builder.deps.clock

    @property
    def telemetry(self) -> Telemetry:
        return self.graph.builder.deps.telemetry

    def open(self) -> Step[OpenSession]:
        """Within a step: the session; raises `OtherPersonError` if it is another's."""
        session, _ = yield from SessionClient(self.graph).read(self.config)
        check_person(session, _name_person(self.config))
        if session.user_id and "checkpoint_id" in self.config["configurable"]:
            before = self.graph.get_state(self.config).values.get("turn") or {}
            session = session.model_copy(update={"facts_at": before.get("started", "")})
        workspace = self.graph.builder.workspaces.open(session.id, self.graph.store)
        if "checkpoint_id" not in self.config["configurable"]:
            session = catch_up(workspace.store, session)
        return OpenSession(session, workspace.store, workspace.full_index)

    def lay_out(self) -> Step[list[BaseMessage]]:
        """Within a step: the prompt by which the newest turn was answered, laid out anew."""
        session, store, _ = yield from self.open()
        receipt = store.last_receipt(session)
        if receipt is None:
            return []
        deps, kept = self.graph.builder.deps, self.graph.store
        workspace = deps.workspaces.open(session.id, kept)
        view = store.messages(session, session.view, parse_message_number(receipt.user))
        return lay_out_prompt(deps, kept, workspace, session, view).messages

    def change(self, changes: Sequence[TopicChange]) -> Step[Turn]:
        """Within a step: make changes by a turn of the graph, at the checkpoint that is named.

        Raises:
            InputError: Another turn is not finished.
        """
        turn = yield from SessionClient(self.graph).apply_changes(self.config, changes)
        if turn is None:
            raise InputError(
                "a turn of session {session!r} is not finished: finish it first",
                session=self.thread,
            )
        return turn

    def after_change(self) -> GraphAccess:
        """The way to the session after a change: no more at the checkpoint before it."""
        return GraphAccess(self.graph, name_thread(self.thread))

    def purge(self, plan: PurgePlan, first: Callable[[], object]) -> Step[tuple[str, ...]]:
        """Within a step: remove messages for good; returns where they may still be found.

        What is to be done `first` is, once it is sure that they may be removed.

        Raises:
            InputError: A turn is not finished.
        """
        _, store, _ = yield from self.open()
        thread = name_thread(self.thread)
        return (yield from purge_messages(store, self.graph, thread, plan, first))

    def delete(self) -> Step[None]:
        """Within a step: delete the session with its thread."""
        return _delete(self.graph, self.thread)


def _delete(graph: Graph, thread: str) -> Step[None]:
    return either(partial(delete_session, graph, thread), partial(adelete_session, graph, thread))


Access = StorageAccess | GraphAccess
"""A way to a session."""


def open_access(graph: Graph, config: RunnableConfig) -> Access:
    """The way to a session through its graph or its agent; raises as `Memory.of` does."""
    part = is_part(graph)
    if isinstance(graph, CompiledSessionGraph) and not part:
        return GraphAccess(graph, config)
    if "checkpoint_id" in config["configurable"]:
        raise InputError(
            "the memory of an agent, or of a part of a graph, is shown as it is now: name no"
            " checkpoint"
        )
    thread = str(config["configurable"]["thread_id"])
    deps = find_deps(graph)
    opened = deps.workspaces.open(thread, graph.store)
    facts, person = open_facts(graph.store), _name_person(config)
    reached = None if part else graph
    return StorageAccess(
        thread,
        opened.store,
        opened.full_index,
        facts,
        deps.clock,
        deps.telemetry,
        reached,
        person,
    )


def _name_person(config: RunnableConfig) -> Person | None:
    return read_person(("", ""), config["configurable"])


def open_facts(store: BaseStore | None) -> ReflectionStore:
    """The facts that reflection keeps in a store; none without a store."""
    return ReflectionStore(InMemoryStore() if store is None else store)
