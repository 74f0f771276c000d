"""The session graph: which node follows which."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from functools import partial
from operator import attrgetter
from threading import Condition
from types import new_class
from typing import TYPE_CHECKING, Any, Literal

from cachetools import LRUCache, cached
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import VectorStore
from langgraph.graph import StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, RetryPolicy, TracePolicy, omit_payload

from topicloom.context.token_count import TokenCounter
from topicloom.domain import Domain
from topicloom.effects import Step, either
from topicloom.errors import (
    ConfigurationError,
    InputError,
    ReplyError,
    StorageUnavailableError,
    TopicLoomWarning,
)
from topicloom.graph.compiled import SessionGraph
from topicloom.graph.deps import choose_models, make_deps
from topicloom.graph.routes import Routes
from topicloom.nodes.activate_topic import TopicSearch, activate_topic, amnesia
from topicloom.nodes.apply_changes import apply_changes
from topicloom.nodes.assemble import assemble
from topicloom.nodes.deps import Deps
from topicloom.nodes.estimate import estimate
from topicloom.nodes.finalize import finalize
from topicloom.nodes.ingest import ingest
from topicloom.nodes.main_generate import main_generate
from topicloom.nodes.read_topic import read_topic
from topicloom.nodes.reconcile import reconcile
from topicloom.nodes.retrieve import retrieve
from topicloom.nodes.split import split
from topicloom.nodes.step import Update, node, open_turn, publish_on_failure, turn_options
from topicloom.roles.archive_search import ArchiveSearch
from topicloom.roles.base import RoleName
from topicloom.roles.choice import ModelSpec, RoleModelSpec
from topicloom.roles.registry import Roles
from topicloom.search.embedder import Embedder
from topicloom.settings import Settings
from topicloom.state.channels import ReadTask, SessionInput, SessionState, TurnOptions
from topicloom.state.message_form import make_result_storable
from topicloom.storage.base import Storage
from topicloom.texts import FilledText

if TYPE_CHECKING:
    from topicloom.domain.wiring import DomainRuntime

Nodes = dict[str, Runnable[Any, Update]]
"""Nodes by name."""


def build_session_graph(
    *,
    model: ModelSpec | None = None,
    cheap_model: ModelSpec | None = None,
    role_models: Mapping[RoleName, RoleModelSpec] | None = None,
    settings: Settings | None = None,
    roles: Roles | None = None,
    tools: Sequence[BaseTool | Callable[..., object]] = (),
    instructions: str = "",
    storage: Storage | Literal["store"] | None = None,
    clock: Callable[[], datetime] | None = None,
    counter: TokenCounter | None = None,
    embedder: Embeddings | Embedder | str | None = None,
    archive_index: VectorStore | None = None,
    domain: Domain | None = None,
    state_schema: type[Any] | None = None,
) -> SessionGraph:
    """One endless chat session as an uncompiled graph.

    Compile it with a checkpointer and call it with a `thread_id`; pass only what is new:

        graph = build_session_graph().compile(checkpointer=local_checkpointer())
        graph.invoke({"messages": [("user", "Hello")]}, {"configurable": {"thread_id": "1"}})

    Args:
        model: The strong model, which replies and splits: a LangChain chat model, or a string
            such as `openai:gpt-5`. Without one the embedded roles quote what was said.
        cheap_model: Reads topics, routes and writes briefs; the strong one if not given.
        role_models: A model of its own for a role; for `arbiter` also a LangChain cross-encoder.
        settings: What can be tuned; read from `TOPICLOOM_*` if not given. Models that are given
            here go before those of the settings.
        roles: Ready-made roles instead of models.
        tools: The application's own tools, run in a normal tool loop.
        instructions: The application's own system prompt.
        storage: Where topics live: files in `settings.folder` if not given; `"store"` for the
            store that the graph is compiled with.
        clock: Tells the time, with its zone; the system's if not given.
        counter: Counts tokens; one for the model of the settings if not given.
        embedder: What messages are searched with: any LangChain `Embeddings`, or what the setting
            takes, which it goes before.
        archive_index: Where reviews hand over archived topics to; searched last, when nothing else
            is found.
        domain: The application's own data: facts that have to be exact, kept as a document beside
            the conversation.
        state_schema: Further channels of the application's own, as a `TypedDict`: input sets them,
            and tools do by a `Command`.

    Raises:
        ConfigurationError: If a model cannot be opened, or a setting or the domain cannot be used.
    """
    _check_types(settings=settings, roles=roles, tools=tools, domain=domain, storage=storage)
    settings = settings or Settings()
    make = partial(
        make_deps,
        tools=tools,
        instructions=instructions,
        storage=storage,
        clock=clock,
        counter=counter,
        domain=domain is not None,
    )
    models = choose_models(settings, model, cheap_model, role_models)
    deps = make(settings, models, roles=roles, embedder=embedder)
    runtime = _prepare(domain, deps)

    def vary(options: TurnOptions) -> Nodes:
        own = settings.model_copy(update={"window": options.window or settings.window})
        strong, cheap = options.model or model, options.cheap_model or cheap_model
        named = options.model or options.cheap_model
        made = make(
            own,
            choose_models(own, strong, cheap, role_models),
            roles=None if named else roles,
            embedder=deps.embedder,
        )
        made = replace(made, workspaces=deps.workspaces, user=deps.user, meter=deps.meter)
        return _make_nodes(made, archive_index, _prepare(domain, made, runtime))

    return wire_graph(deps, runtime, archive_index, state_schema, vary)


def _check_types(**given: object) -> None:
    """Raise `ConfigurationError` if an argument is of another kind than it has to be."""
    for name, (kinds, way) in _KINDS.items():
        value = given[name]
        if value is not None and value != "store" and not isinstance(value, kinds):
            raise ConfigurationError(
                "{name}={value!r:.60} cannot be used: give {way}",
                name=name,
                value=value,
                way=FilledText(way),
            )


_KINDS: Mapping[str, tuple[type, str]] = {
    "settings": (Settings, "Settings(window=16_000), or whatever is to be set"),
    "roles": (Roles, 'what `embedded_roles` makes; models go to role_models={"reader": "..."}'),
    "tools": (Sequence, "a list of tools"),
    "domain": (Domain, "Domain(...), whose document comes with the input"),
    "storage": (Storage, 'a Storage such as FileStorage("sessions"), or "store"'),
}
"""Of what kind arguments are, and the way out."""


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
    state, given = (domain.state, domain.input) if domain else (SessionState, SessionInput)
    if own is not None:
        state, given = (new_class(base.__name__, (base, own)) for base in (state, given))
    graph = SessionGraph(state, deps=deps, context_schema=TurnOptions, input_schema=given)
    nodes = _make_nodes(deps, archive_index, domain)
    _add_nodes(graph, _vary_nodes(nodes, vary) if vary else nodes, deps.settings)
    if deps.window.tools:
        graph.add_node("tools", _make_tool_node(deps, graph.channels, domain))
    routes = Routes(bool(deps.window.tools), domain.parallel_nodes if domain else ())
    routes.connect(graph)
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
    Routes().connect_memory(graph)
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

        return node(step, name)

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
        "amnesia": amnesia(search),
        "assemble": assemble(deps),
        "activate_topic": activate_topic(search),
        "read_topic": read_topic(deps),
        **(domain.nodes if domain else {}),
    }


def _make_tool_node(
    deps: Deps, channels: Collection[str], domain: DomainRuntime | None
) -> ToolNode:
    """The node that runs tools; it warns of what a `Command` of one would set in no channel.

    What was said is kept, too, where one of them raises. A document that cannot be used is an error
    of the tool that sets it: in its channel, the next message would be refused for it.
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
            if domain and "document" in update:
                try:
                    domain.validate(update["document"])
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
