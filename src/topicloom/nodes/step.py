"""Graph nodes from functions and steps, and access to the state, the runtime and its store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from pydantic import BaseModel

from topicloom.context.notes import format_facts
from topicloom.effects import Step, arun_step, run_step
from topicloom.errors import MissingThreadError
from topicloom.nodes.deps import Deps, KnownFact
from topicloom.nodes.runs import current_run
from topicloom.nodes.workspace import Workspace, Workspaces
from topicloom.state.channels import TurnOptions
from topicloom.state.persons import Person, claim_session, read_person
from topicloom.state.safe_text import describe_error
from topicloom.state.session import Session, Turn, TurnPlan
from topicloom.storage.sessions import SessionStore
from topicloom.storage.writers import publish

_log = logging.getLogger("topicloom.nodes")
S = TypeVar("S")
T = TypeVar("T")
Update = dict[str, Any]


def node(work: Callable[[S], Update | Step[Update]], name: str) -> Runnable[S, Update]:
    """A node, named for traces, that works in the calling thread, or beside the event loop."""
    return _Node(work, name)


class _Node(Runnable[S, Update]):
    """LangGraph traces a node by itself: this needs no run of its own below that."""

    def __init__(self, work: Callable[[S], Update | Step[Update]], name: str) -> None:
        self._work, self.name = work, name

    def invoke(self, input: S, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Work in the calling thread."""
        return run_step(self._step(input))

    async def ainvoke(
        self,
        input: S,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Update:
        """Work beside the event loop."""
        return await arun_step(self._step(input))

    def _step(self, state: S) -> Step[Update]:
        update = self._work(state)
        return (yield from update) if isinstance(update, Generator) else update


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
    return claim_session(run.place(session), current_person())


def current_person() -> Person | None:
    """The person that the application names with this run; None if it names nobody."""
    options = turn_options()
    return read_person((options.user_id, options.scope), get_config().get("configurable", {}))


def current_plan(state: Any) -> TurnPlan | None:
    """The plan of the newest turn that was planned; None where nothing plans."""
    plan = state.get("plan")
    return None if plan is None else TurnPlan.model_validate(plan)


def open_workspace(workspaces: Workspaces, session: Session) -> Workspace:
    """The workspace of a session, on the graph's own store if no other storage was given.

    What was purged before the run began is not in its memory any more; see `Workspaces.open`.
    """
    renewed = current_run().renewed
    workspace = workspaces.open(session.id, get_runtime().store, renewed=session.id in renewed)
    renewed.add(session.id)
    return workspace


def open_turn(workspaces: Workspaces, state: Any) -> tuple[Session, Turn, Workspace]:
    """The session and the turn of the state, and the workspace of the session."""
    session = current_session(state)
    turn = Turn.model_validate(state["turn"])
    return session, turn, open_workspace(workspaces, session)


@contextmanager
def publish_on_failure(store: SessionStore, session: Session) -> Iterator[None]:
    """Should what is inside fail, or be cancelled, the session is written as a tip as it is.

    So what was said is kept, whoever goes on next: a checkpoint of another writer may be newer.
    """
    try:
        yield
    except GraphBubbleUp:
        raise
    except BaseException:
        publish(store, session)
        raise


def turn_options() -> TurnOptions:
    """The options that the application passed with this turn; none in an `update_state`."""
    context = getattr(get_runtime(), "context", None)
    return context if isinstance(context, TurnOptions) else _NO_OPTIONS


_NO_OPTIONS = TurnOptions()


def choose_facts(deps: Deps, session: Session, refs: Sequence[str]) -> dict[str, str]:
    """The newest facts about the user, to be shown as long as the prefix lasts: days by key.

    They come to no more than a turn may recall; what was said on another branch than that of the
    transcript's `refs` is none of them.
    """
    branch = frozenset(refs)
    chosen: dict[str, str] = {}
    left = deps.window.recall
    for key, (day, text, said, _) in reversed(_read_facts(deps, session).items()):
        if said and branch.isdisjoint(said):
            continue
        left -= deps.window.counter.text(text)
        if left < 0 or len(chosen) == deps.settings.facts:
            break
        chosen[key] = day
    return dict(reversed(chosen.items()))


def date_facts(deps: Deps, session: Session, facts: Mapping[str, str]) -> Session:
    """The session with the facts that were chosen now."""
    chosen = deps.clock().isoformat(timespec="seconds") if session.user_id else ""
    return session.model_copy(update={"facts": dict(facts), "facts_chosen": chosen})


def show_facts(deps: Deps, session: Session) -> str:
    """The caller's instructions for the turn, and the chosen facts that are kept still, as they
    stand in the prompt; "" for none.
    """
    known = _read_facts(deps, session) if session.facts else {}
    told = turn_options().instructions
    return "\n\n".join(filter(None, [told, format_chosen(session, known)]))


def format_chosen(session: Session, known: Mapping[str, KnownFact]) -> str:
    """The session's chosen facts, as far as they are known, as they stand in the prompt."""
    kept = [(day, known[key][1]) for key, day in session.facts.items() if key in known]
    return format_facts(kept, session.language)


def _read_facts(deps: Deps, session: Session) -> dict[str, KnownFact]:
    workspace = open_workspace(deps.workspaces, session)
    if not deps.settings.facts:
        return {}
    if session.user_id:
        now = deps.clock().timestamp()
        return (
            read_beside(
                workspace,
                lambda kept, _: dict(deps.person_facts(kept, workspace.store, session, now)),
                session,
            )
            or {}
        )
    known = read_beside(workspace, deps.known_facts, session) or {}
    return select_valid(workspace.store, session, known)


def select_valid(
    store: SessionStore, session: Session, known: Mapping[str, KnownFact]
) -> dict[str, KnownFact]:
    """The facts that rest on nothing that was superseded, by key."""
    gone = {f"m{number}" for number in store.superseded(session)}
    return {key: fact for key, fact in known.items() if gone.isdisjoint(fact[3])}


def read_beside(
    workspace: Workspace, read: Callable[[BaseStore, str], T], session: Session
) -> T | None:
    """What was left for a session in the graph's store; None without one, or if it fails.

    The workspace has then, for the receipt, why.
    """
    store = get_runtime().store
    try:
        return None if store is None else read(store, session.id)
    except Exception as error:  # noqa: BLE001 - whatever a store raises, a turn goes on without it
        workspace.unread[describe_error(error)] = None
        _log.exception("the graph's store cannot be read for session %r", session.id)
        return None


def emit(kind: str, **data: Any) -> None:
    """Send a progress event to the `custom` stream."""
    get_runtime().stream_writer({"type": kind, **data})


def dumped(rows: Iterable[BaseModel]) -> list[dict[str, Any]]:
    """Calls or readings as their channels take them."""
    return [row.model_dump(mode="json", exclude_defaults=True) for row in rows]


def dump(session: Session | None = None, turn: Turn | None = None) -> Update:
    """The part of an update that holds the session and the turn."""
    update: Update = {}
    if session is not None:
        update["session"] = session.model_dump(mode="json", exclude_defaults=True)
    if turn is not None:
        update["turn"] = turn.model_dump(mode="json", exclude_defaults=True)
    return update
