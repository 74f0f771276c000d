"""The session graph as it is run: one run of a thread at a time, and forks that know it."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, closing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from uuid import uuid4

from cachetools import LRUCache
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.runnables.config import merge_configs
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Overwrite, StateSnapshot, StateUpdate

from topicloom.domain.state import DomainInput
from topicloom.graph.given import check_input, check_thread
from topicloom.graph.purged_state import hide_purged
from topicloom.graph.receipts import ReceiptStream
from topicloom.nodes.deps import Deps
from topicloom.nodes.runs import RunQueue, name_thread
from topicloom.nodes.step import dump
from topicloom.state.channels import SessionInput, SessionState, TurnOptions
from topicloom.state.message_form import make_update_storable
from topicloom.state.persons import Person, check_person, read_person
from topicloom.state.session import Session
from topicloom.state.superseding import removes_all
from topicloom.storage.protection import check_protected
from topicloom.storage.writers import branch_off

_OWNERS = 4_096
"""Threads of which it is remembered whose they are."""
_END = object()
"""Stands behind the last part of a stream."""


class _Claim(NamedTuple):
    """A person who asks for a thread, and the configuration of that thread."""

    person: Person
    config: RunnableConfig


class CompiledSessionGraph(
    CompiledStateGraph[SessionState, TurnOptions, SessionInput, SessionState]
):
    """A compiled session graph: its runs of one thread go on one at a time.

    A run that names a checkpoint, or that goes on from a state that was changed at one, is a fork.
    """

    builder: SessionGraph

    if TYPE_CHECKING:  # LangGraph's own, but without types that nobody knows

        def invoke(  # type: ignore[override]
            self,
            input: DomainInput | Command[Any] | None,
            config: RunnableConfig | None = None,
            **options: Any,
        ) -> dict[str, Any]: ...
        async def ainvoke(  # type: ignore[override]
            self,
            input: DomainInput | Command[Any] | None,
            config: RunnableConfig | None = None,
            **options: Any,
        ) -> dict[str, Any]: ...

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> Generator[Any]:
        """As LangGraph has it, as soon as no other run of the thread goes on."""
        given = ensure_config(merge_configs(self.config, config)).get("configurable", {})
        input = check_input(input, given, self.builder.channels, self.builder.check_document)
        check_thread(input, given, self.checkpointer)
        self._check_owner(given, options)
        with (
            self.builder.runs.hold(given) as run,
            closing(cast("Generator[Any]", super().stream(input, config, **options))) as parts,
        ):
            run = run.given(input)
            while True:
                with run.inside():
                    part = next(parts, _END)
                if part is _END:
                    return
                yield part

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncGenerator[Any]:
        """As LangGraph has it, as soon as no other run of the thread goes on."""
        given = ensure_config(merge_configs(self.config, config)).get("configurable", {})
        input = check_input(input, given, self.builder.channels, self.builder.check_document)
        check_thread(input, given, self.checkpointer)
        await self._acheck_owner(given, options)
        async with (
            self.builder.runs.ahold(given) as run,
            aclosing(
                cast("AsyncGenerator[Any]", super().astream(input, config, **options))
            ) as parts,
        ):
            run = run.given(input)
            while True:
                with run.inside():
                    part = await anext(parts, _END)
                if part is _END:
                    return
                yield part

    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """As LangGraph has it, without what was purged behind the checkpoint.

        Raises `OtherPersonError` if the configuration names another user than the thread's.
        """
        self._check_owner(config.get("configurable", {}), {})
        return self._hide_purged(super().get_state(config, subgraphs=subgraphs))

    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """As `get_state`."""
        await self._acheck_owner(config.get("configurable", {}), {})
        state = await super().aget_state(config, subgraphs=subgraphs)
        return await asyncio.to_thread(self._hide_purged, state)

    def get_state_history(self, config: RunnableConfig, **options: Any) -> Iterator[StateSnapshot]:
        """As LangGraph has it, without what was purged behind the checkpoints."""
        self._check_owner(config.get("configurable", {}), {})
        return map(self._hide_purged, super().get_state_history(config, **options))

    async def aget_state_history(
        self, config: RunnableConfig, **options: Any
    ) -> AsyncIterator[StateSnapshot]:
        """As `get_state_history`."""
        await self._acheck_owner(config.get("configurable", {}), {})
        async for state in super().aget_state_history(config, **options):
            yield await asyncio.to_thread(self._hide_purged, state)

    def _look_up(self, given: Mapping[str, Any], options: Mapping[str, Any]) -> _Claim | None:
        """The claim of a run whose thread may be another's; None if it is known whose it is.

        Raises `OtherPersonError` if the person that a run names cannot be one.
        """
        person = _find_person(given, options)
        thread = str(given.get("thread_id") or "")
        if person is None or not self.checkpointer or given.get("checkpoint_ns"):
            return None
        known = self.builder.owners.get(thread) == person
        return None if known else _Claim(person, name_thread(thread))

    def _check(self, claim: _Claim, state: StateSnapshot) -> None:
        """Raise `OtherPersonError` if the newest state of a thread is another's than claimed."""
        session = Session.model_validate(state.values.get("session") or {"id": "-"})
        thread = claim.config["configurable"]["thread_id"]
        check_person(session.model_copy(update={"id": thread}), claim.person)
        if session.user_id:
            self.builder.owners[thread] = claim.person

    def _check_owner(self, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """Before anything is read or written: raise `OtherPersonError` if a thread is another's."""
        if claim := self._look_up(given, options):
            self._check(claim, super().get_state(claim.config))

    async def _acheck_owner(self, given: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        if claim := self._look_up(given, options):
            self._check(claim, await super().aget_state(claim.config))

    def _hide_purged(self, state: StateSnapshot) -> StateSnapshot:
        return hide_purged(state, self.builder.workspaces, self.store)

    def bulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """As LangGraph has it; at a checkpoint that is named, it begins a fork.

        Where it removes all messages, these are all that were ever said.
        """
        supersteps = self.builder.make_storable(supersteps)
        self._check_owner(config.get("configurable", {}), {})
        if _names_checkpoint(config) or _clears(supersteps):
            supersteps = _mark(config, self.get_state(config).values, supersteps)
        return super().bulk_update_state(config, supersteps)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """As `bulk_update_state`."""
        supersteps = self.builder.make_storable(supersteps)
        await self._acheck_owner(config.get("configurable", {}), {})
        if _names_checkpoint(config) or _clears(supersteps):
            supersteps = _mark(config, (await self.aget_state(config)).values, supersteps)
        return await super().abulk_update_state(config, supersteps)


class SessionGraph(StateGraph[SessionState, TurnOptions, SessionInput, SessionState]):
    """The session graph, to be compiled."""

    def __init__(
        self,
        *args: Any,
        deps: Deps,
        validate: Callable[[object], object] | None = None,
        **options: Any,
    ) -> None:
        """As LangGraph has it, with the collaborators of its nodes.

        `validate` gives an application's document as it can be kept, or raises `InputError`.
        """
        super().__init__(*args, **options)
        self._validate = validate
        self.runs = RunQueue(deps.settings.reply_seconds, deps.telemetry)
        self.deps, self.workspaces = deps, deps.workspaces
        self.owners = LRUCache[str, Person](_OWNERS)
        """Whose a thread is, of those spoken in last: it does not change."""

    def check_document(self, values: Any) -> Any:
        """An input or an update with its document as it can be kept; itself if it has none.

        It is checked before LangGraph takes it in: one that is refused leaves no trace.

        Raises:
            InputError: It cannot be used.
        """
        if self._validate is None or not isinstance(values, Mapping) or "document" not in values:
            return values
        given = values["document"]
        document = given.value if isinstance(given, Overwrite) else given
        return {**values, "document": self._validate(document)}

    def make_storable(self, supersteps: Sequence[Sequence[StateUpdate]]) -> list[list[StateUpdate]]:
        """Updates as they can be kept; raises `InputError` for one that cannot."""
        return [
            [u._replace(values=make_update_storable(self.check_document(u.values))) for u in step]
            for step in supersteps
        ]

    def compile(
        self, *args: Any, transformers: Sequence[Any] | None = None, **options: Any
    ) -> CompiledSessionGraph:
        """Compile it as any LangGraph graph; its event streams have its receipts as well.

        Raises:
            ConfigurationError: A key is set, and a checkpointer or store would not encrypt.
        """
        if self.workspaces.keys:
            check_protected(args[0] if args else options.get("checkpointer"), options.get("store"))
        streams = [ReceiptStream, *(transformers or ())]
        compiled = super().compile(*args, transformers=streams, **options)
        # `StateGraph.compile` names the class that it makes. `Pregel.copy` makes another one of its
        # attributes, but drops the types that strict checkpointers let through.
        compiled.__class__ = CompiledSessionGraph  # tests/graph/test_what_langgraph_is_like.py
        return cast("CompiledSessionGraph", compiled)


def _names_checkpoint(config: RunnableConfig) -> bool:
    return bool(config.get("configurable", {}).get("checkpoint_id"))


def _find_person(given: Mapping[str, Any], options: Mapping[str, Any]) -> Person | None:
    """The person that a run names, by its configuration or its context."""
    context = options.get("context")
    read = context.get if isinstance(context, Mapping) else partial(getattr, context)
    return read_person((read("user_id", "") or "", read("scope", "") or ""), given)


def _clears(supersteps: Sequence[Sequence[StateUpdate]]) -> bool:
    return any(removes_all(update.values) for step in supersteps for update in step)


def _mark(
    config: RunnableConfig, values: Mapping[str, Any], supersteps: Sequence[Sequence[StateUpdate]]
) -> Sequence[Sequence[StateUpdate]]:
    """Updates of a state, the first of which marks its session: at a checkpoint that is named, as
    one on a branch of its own, and where all messages are removed, as one that showed them all.
    """
    first = supersteps[0][0] if supersteps and supersteps[0] else None
    if not values.get("session") or first is None or not isinstance(first.values, Mapping):
        return supersteps
    session = Session.model_validate(values["session"])
    marks: dict[str, Any] = {"shown": 1} if _clears(supersteps) else {}
    if _names_checkpoint(config):
        session = branch_off(session, config["configurable"]["thread_id"], uuid4().hex)
        if session.user_id:
            marks["facts_at"] = (values.get("turn") or {}).get("started", "")
    marked = dump(session.model_copy(update=marks)) | dict(first.values)
    return [[first._replace(values=marked), *supersteps[0][1:]], *supersteps[1:]]
