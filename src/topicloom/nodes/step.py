"""Graph nodes from functions and steps, and access to the state, the runtime and its store."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from pydantic import BaseModel

from topicloom.effects import Step, arun_step, run_step
from topicloom.errors import MissingThreadError
from topicloom.nodes.runs import current_run
from topicloom.nodes.workspace import Workspace, Workspaces
from topicloom.reflection.store import ReflectionStore
from topicloom.state.channels import TurnOptions
from topicloom.state.persons import Person, claim_session, read_person
from topicloom.state.recall import Reading
from topicloom.state.receipt import Call
from topicloom.state.safe_text import describe_error
from topicloom.state.session import Session, Turn
from topicloom.state.zones import find_zone
from topicloom.storage.sessions import SessionStore
from topicloom.storage.writers import publish

_log = logging.getLogger("topicloom.nodes")
S = TypeVar("S")
T = TypeVar("T")
Update = dict[str, Any]


class Node(Runnable[S, Update]):
    """A node, named for traces. LangGraph traces it by itself: it needs no run below that."""

    def __init__(
        self, work: Callable[[S], Update | Step[Update]], name: str, *, timed: bool = True
    ) -> None:
        """A node; the turn that it passes on says how long it took, if it is `timed`."""
        self._work, self.name, self._timed = work, name, timed

    def invoke(self, input: S, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Work in the calling thread."""
        return run_step(self._step(input))

    async def ainvoke(
        self, input: S, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Update:
        """Work in worker threads, so that the event loop is free."""
        return await arun_step(self._step(input))

    def _step(self, state: S) -> Step[Update]:
        began, update = time.time(), self._work(state)
        update = (yield from update) if isinstance(update, Generator) else update
        if self._timed and (turn := update.get("turn")):
            took = [self.name, round(began, 4), round(time.time() - began, 4)]
            update["turn"] = {**turn, "steps": [*turn.get("steps", ()), took]}
        return update


NO_THREAD = (
    "a session needs a thread: call the graph with "
    'config={"configurable": {"thread_id": "..."}} and compile it with a checkpointer'
)


def current_session(state: Any) -> Session:
    """The session of the state, or a new one, as one of the person that the run names.

    Raises:
        MissingThreadError: There is no thread.
        OtherPersonError: It belongs to another person.
    """
    run = current_run()
    if not (state.get("session") or run.thread):
        raise MissingThreadError(NO_THREAD)
    known = state.get("session")
    session = Session.model_validate(known) if known else Session(id=run.thread)
    session = claim_session(run.place(session), current_person())
    given = get_config().get("configurable", {})
    if account := turn_options().account or given.get("account"):
        session = session.model_copy(update={"account": str(account)})
    zone = turn_options().timezone or given.get("timezone")
    return session.model_copy(update={"timezone": find_zone(zone).key}) if zone else session


def current_person() -> Person | None:
    """The person that the application names with this run; None if it names nobody."""
    options = turn_options()
    return read_person((options.user_id, options.scope), get_config().get("configurable", {}))


def place_user(session: Session, workspace: Workspace | None = None) -> Session:
    """The session with where its user usually is: as the graph's store says, else the run."""
    usual = turn_options().usual_timezone
    if user := session.user_id:
        kept = read_store(graph_store(), workspace, lambda s: ReflectionStore(s).timezone(user))
        usual = kept or usual
    return session.model_copy(update={"usual_timezone": usual})


def open_workspace(workspaces: Workspaces, session: Session) -> Workspace:
    """The workspace of a session, on the graph's own store if no other storage was given.

    What was purged before the run began is not in its memory any more; see `Workspaces.open`.
    """
    renewed = current_run().renewed
    workspace = workspaces.open(session.id, get_runtime().store, renewed=session.id in renewed)
    renewed.add(session.id)
    return workspace


def open_current(workspaces: Workspaces, state: Any) -> tuple[Session, Workspace]:
    """The session of the state, and its workspace."""
    session = current_session(state)
    return session, open_workspace(workspaces, session)


def open_turn(workspaces: Workspaces, state: Any) -> tuple[Session, Turn, Workspace]:
    session, workspace = open_current(workspaces, state)
    return session, Turn.model_validate(state["turn"]), workspace


def read_unfinished(state: Mapping[str, Any], session: Session) -> Turn | None:
    """The turn that a session has not closed: one that failed, or that was begun here."""
    begun = Turn.model_validate(state["turn"]) if state.get("turn") else None
    return begun if begun and begun.number > session.turn else None


def load_readings(state: Mapping[str, Any]) -> list[Reading]:
    return [Reading.model_validate(r) for r in state.get("readings") or ()]


@contextmanager
def publish_on_failure(store: SessionStore, session: Session) -> Iterator[None]:
    """If the code inside fails or is cancelled, write the session as the tip of a branch.

    So the new messages are kept, even if another writer has a newer checkpoint.
    """
    try:
        yield
    except GraphBubbleUp:
        raise
    except BaseException:  # a cancellation too
        publish(store, session)
        raise


def turn_options() -> TurnOptions:
    """The options that the application passed with this turn; none in an `update_state`."""
    context = getattr(get_runtime(), "context", None)
    return context if isinstance(context, TurnOptions) else _NO_OPTIONS


_NO_OPTIONS = TurnOptions()


def graph_store() -> BaseStore | None:
    return get_runtime().store


def read_store(
    kept: BaseStore | None, workspace: Workspace | None, read: Callable[[BaseStore], T]
) -> T | None:
    """Read something from the graph's store; None without a store, or if it fails.

    If it fails, the workspace, if one is given, keeps the reason for the receipt.
    """
    try:
        return None if kept is None else read(kept)
    except Exception as error:  # noqa: BLE001 - the receipt has it, the turn goes on
        if workspace is not None:
            workspace.unread[describe_error(error)] = None
        thread = get_config()["configurable"].get("thread_id")
        _log.exception("the graph's store cannot be read for session %r", thread)
        return None


def emit(kind: str, **data: Any) -> None:
    """Send a progress event to the `custom` stream."""
    get_runtime().stream_writer({"type": kind, **data})


def dumped(rows: Iterable[BaseModel]) -> list[dict[str, Any]]:
    """Calls or readings as their channels take them."""
    return [row.model_dump(**_DUMPED) for row in rows]


_DUMPED: Any = {"mode": "json", "exclude_defaults": True}


def dump(
    session: Session | None = None, turn: Turn | None = None, **rows: Iterable[Call | Reading]
) -> Update:
    """The part of an update that holds the session and the turn, and adds rows to `calls=...`."""
    heads = {"session": session, "turn": turn}
    update: Update = {k: v.model_dump(**_DUMPED) for k, v in heads.items() if v is not None}
    return update | {channel: dumped(some) for channel, some in rows.items()}
