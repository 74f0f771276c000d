"""The session graph: which node follows which."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractContextManager
from functools import partial
from operator import attrgetter
from threading import Condition
from types import new_class
from typing import TYPE_CHECKING, Any, Unpack

from cachetools import LRUCache, cached
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore
from langgraph.graph import StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, RetryPolicy, TracePolicy, omit_payload

from topicloom.domain import Domain
from topicloom.domain.state import DomainInput, DomainState
from topicloom.effects import Step, either
from topicloom.errors import InputError, ReplyError, StorageUnavailableError, TopicLoomWarning
from topicloom.graph.compiled import SessionGraph
from topicloom.graph.deps import make_deps, vary_deps
from topicloom.graph.parts import GraphParts, SessionOptions
from topicloom.graph.routes import Routes
from topicloom.nodes.activate_topic import TopicSearch, search_topics
from topicloom.nodes.apply_changes import apply_changes
from topicloom.nodes.assemble import assemble
from topicloom.nodes.deps import Deps
from topicloom.nodes.estimate import estimate
from topicloom.nodes.finalize import finalize
from topicloom.nodes.ingest import ingest
from topicloom.nodes.main_generate import main_generate
from topicloom.nodes.read_topic import read_topic
from topicloom.nodes.reconcile import begin_turn, reconcile
from topicloom.nodes.retrieve import retrieve
from topicloom.nodes.split import split
from topicloom.nodes.step import Node, Update, open_turn, publish_on_failure, turn_options
from topicloom.roles.archive_search import ArchiveSearch
from topicloom.settings import Settings
from topicloom.state.channels import ReadTask, SessionInput, SessionState, TurnOptions
from topicloom.state.message_form import make_result_storable
from topicloom.texts import FilledText

if TYPE_CHECKING:
    from topicloom.domain.wiring import DomainRuntime

Nodes = dict[str, Runnable[Any, Update]]
"""Nodes by name."""


def build_session_graph(**options: Unpack[SessionOptions]) -> SessionGraph:
    """One endless chat session as an uncompiled graph.

    Compile it with a checkpointer and call it with a `thread_id`; pass only what is new:

        graph = build_session_graph().compile(checkpointer=local_checkpointer())
        graph.invoke({"messages": [("user", "Hello")]}, {"configurable": {"thread_id": "1"}})

    Args:
        options: Models, settings, storage and more: see `SessionOptions`.

    Raises:
        ConfigurationError: If a model cannot be opened, or a setting or the domain cannot be used.
    """
    parts = GraphParts(**options)
    deps = make_deps(parts)
    runtime = _prepare(parts.domain, deps)

    def vary(options: TurnOptions) -> Nodes:
        made = vary_deps(deps, parts, options)
        return _make_nodes(made, parts.archive_index, _prepare(parts.domain, made, runtime))

    return wire_graph(deps, runtime, parts.archive_index, parts.state_schema, vary)


def wire_graph(
    deps: Deps,
    domain: DomainRuntime | None = None,
    archive_index: VectorStore | None = None,
    own: type[Any] | None = None,
    vary: Callable[[TurnOptions], Nodes] | None = None,
) -> SessionGraph:
    """The session graph of some collaborators; see `build_session_graph`.

    `own` is its `state_schema`; `vary` makes the nodes for the options of a run.
    """
    state: type[Any] = DomainState if domain else SessionState
    given: type[Any] = DomainInput if domain else SessionInput
    if own is not None:
        state, given = (new_class(base.__name__, (base, own)) for base in (state, given))
    graph = SessionGraph(
        state,
        deps=deps,
        validate=domain.validate if domain else None,
        context_schema=TurnOptions,
        input_schema=given,
    )
    nodes = _make_nodes(deps, archive_index, domain)
    _add_nodes(graph, _vary_nodes(nodes, vary) if vary else nodes, deps.settings)
    if deps.window.tools:
        graph.add_node("tools", _make_tool_node(deps, graph.channels, domain))
    streams = domain.parallel_nodes if domain else ()
    Routes(partial(begin_turn, deps), bool(deps.window.tools), streams).connect(graph)
    return graph


def _prepare(
    domain: Domain | None, deps: Deps, running: DomainRuntime | None = None
) -> DomainRuntime | None:
    if domain is None:
        return None
    # Templates and schemas load libraries: only those who have a domain wait for them.
    from topicloom.domain.wiring import DomainRuntime

    return DomainRuntime.prepare(domain, deps, running)


def wire_memory(
    deps: Deps, archive_index: VectorStore | None = None
) -> StateGraph[SessionState, TurnOptions, SessionState, SessionState]:
    """The part of a session graph that comes before the reply, for whoever brings a model to reply.

    It begins with the search that the turn requests, where it does.
    """
    graph = StateGraph(SessionState, TurnOptions)
    _add_nodes(graph, _make_memory(deps, archive_index), deps.settings)
    Routes(partial(begin_turn, deps)).connect_memory(graph)
    return graph


_RETRY = RetryPolicy(
    max_attempts=2, initial_interval=0.1, retry_on=(OSError, StorageUnavailableError)
)
"""For nodes that use the storage."""
_VARIANTS = 16
"""Kinds of runs whose nodes are kept."""


def _vary_nodes(nodes: Nodes, make: Callable[[TurnOptions], Nodes]) -> Nodes:
    """The nodes for whatever models and window a run asks for: those at hand if for none."""
    key = attrgetter("model", "cheap_model", "window")
    made = cached(LRUCache(_VARIANTS), key, condition=Condition())(make)

    def choose(name: str) -> Runnable[Any, Update]:
        def step(state: Any) -> Step[Update]:
            options = turn_options()
            chosen = (made(options) if any(key(options)) else nodes)[name]
            invoke, ainvoke = partial(chosen.invoke, state), partial(chosen.ainvoke, state)
            return (yield from either(invoke, ainvoke))

        return Node(step, name, timed=False)

    return {name: choose(name) for name in nodes}


def _make_nodes(deps: Deps, index: VectorStore | None, domain: DomainRuntime | None) -> Nodes:
    return {
        **_make_memory(deps, index, domain),
        "finalize": finalize(deps, domain.replay if domain else None),
        "main_generate": main_generate(deps),
    }


def _make_memory(
    deps: Deps, index: VectorStore | None, domain: DomainRuntime | None = None
) -> Nodes:
    archive = ArchiveSearch(index, deps.settings.role_seconds) if index is not None else None
    search = TopicSearch(deps, archive)
    return {
        "reconcile": reconcile(deps, domain.replay if domain else None),
        "ingest": ingest(deps),
        "apply_changes": apply_changes(deps),
        "estimate": estimate(deps, domain.skeletons.count_tokens if domain else None),
        "split": split(deps),
        "retrieve": retrieve(deps),
        "amnesia": search_topics(search, "amnesia"),
        "assemble": assemble(deps),
        "activate_topic": search_topics(search, "activate_topic"),
        "read_topic": read_topic(deps),
        **(domain.nodes if domain else {}),
    }


def _make_tool_node(
    deps: Deps, channels: Collection[str], domain: DomainRuntime | None
) -> ToolNode:
    """The node that runs tools; it warns of what a `Command` of one would set in no channel.

    What was said is kept, too, where one of them raises. A document that cannot be used is an error
    of the tool that sets it.
    """

    def keep(state: Any) -> AbstractContextManager[None]:
        session, _, workspace = open_turn(deps.workspaces, state)
        return publish_on_failure(workspace.store, session)

    def check(name: str, result: Any) -> Any:
        result = make_result_storable(name, result)
        for part in result if isinstance(result, list) else [result]:
            update = part.update if isinstance(part, Command) and not part.graph else None
            if not isinstance(update, Mapping):
                continue
            if lost := sorted(set(update) - set(channels)):
                warnings.warn(
                    FilledText(
                        "tool {name!r} sets {lost!r}, which the session has no channel for: name"
                        " it in build_session_graph(state_schema=...)",
                        name=name,
                        lost=lost[0],
                    ),
                    TopicLoomWarning,
                    stacklevel=2,
                )
            if domain and isinstance(update, dict) and "document" in update:
                try:
                    update["document"] = domain.validate(update["document"])
                except InputError as error:
                    raise InputError(
                        "tool {name!r} sets a document that cannot be used: {error}",
                        name=name,
                        error=error,
                    ) from error
        return result

    def run(request: ToolCallRequest, call: Callable[[ToolCallRequest], Any]) -> Any:
        with keep(request.state):
            return check(request.tool_call["name"], call(request))

    async def arun(
        request: ToolCallRequest, call: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        with keep(request.state):
            return check(request.tool_call["name"], await call(request))

    return ToolNode(list(deps.window.tools), wrap_tool_call=run, awrap_tool_call=arun)


def _may_succeed(error: Exception) -> bool:
    """True if a reply that failed may be had by asking again."""
    return isinstance(error, ReplyError) and not error.final


def trace_steps(settings: Settings) -> TracePolicy | None:
    """What traces say of the steps of a turn: names and times, or all that they take and give.

    A step takes the whole state, so that a trace of a turn would have it some ten times.
    """
    if settings.trace_steps:
        return None
    return TracePolicy(process_inputs=omit_payload, process_outputs=omit_payload)


def _add_nodes(
    graph: StateGraph[Any, TurnOptions, Any, Any], nodes: Nodes, settings: Settings
) -> None:
    """The nodes; the main model has as many attempts at its reply as are set."""
    replies = RetryPolicy(
        max_attempts=settings.reply_attempts, initial_interval=0.2, retry_on=_may_succeed
    )
    traces = trace_steps(settings)
    for name, step in nodes.items():
        retry = replies if name == "main_generate" else _RETRY
        given = ReadTask if name == "read_topic" else None
        graph.add_node(name, step, input_schema=given, retry_policy=retry, trace_policy=traces)
