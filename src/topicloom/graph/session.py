"""The session graph: which node follows which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import VectorStore
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy

from topicloom.context.domain import Domain
from topicloom.context.options import TurnOptions
from topicloom.context.tokens import TokenCounter
from topicloom.errors import ReplyError
from topicloom.export.archive_index import ArchiveSearch
from topicloom.graph.parts import Parts, make_parts, models_of
from topicloom.graph.routes import Routes
from topicloom.index.embedder import Embedder
from topicloom.nodes.activate import activate
from topicloom.nodes.assemble import assemble
from topicloom.nodes.estimate import estimate
from topicloom.nodes.generate import generate
from topicloom.nodes.maintain import maintain
from topicloom.nodes.perceive import perceive
from topicloom.nodes.read_topic import read_topic
from topicloom.nodes.recall import recall
from topicloom.nodes.search import SearchDesk
from topicloom.nodes.settle import settle
from topicloom.nodes.split import split
from topicloom.roles.base import RoleName
from topicloom.roles.choice import Model
from topicloom.roles.embedded.reader import EmbeddedReader
from topicloom.roles.team import Roles
from topicloom.settings import Settings
from topicloom.state.channels import ReadTask, SessionInput, SessionState
from topicloom.storage.base import Storage

if TYPE_CHECKING:
    from topicloom.graph.domain import World

SessionGraph = StateGraph[SessionState, TurnOptions, SessionInput, SessionState]


def build_session_graph(
    *,
    model: Model | None = None,
    cheap_model: Model | None = None,
    role_models: Mapping[RoleName, Model] | None = None,
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
) -> SessionGraph:
    """One endless chat session as an uncompiled graph.

    Compile it with a checkpointer and call it with a `thread_id`; pass only what is new:

        graph = build_session_graph().compile(checkpointer=InMemorySaver())
        graph.invoke({"messages": [("user", "Hello")]}, {"configurable": {"thread_id": "1"}})

    Args:
        model: The strong model, which replies and splits: a LangChain chat model, or a string
            such as `openai:gpt-5`. Without one the embedded roles quote what was said.
        cheap_model: Reads topics, routes and writes briefs; the strong one if not given.
        role_models: A model of its own for a role.
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
        domain: The application's own world: facts that have to be exact, kept as a document beside
            the conversation.

    Raises:
        ConfigurationError: If a model cannot be opened, or a setting or the domain cannot be used.
    """
    settings = settings or Settings()
    parts = make_parts(
        settings=settings,
        models=models_of(settings, model, cheap_model, role_models),
        roles=roles,
        tools=tools,
        instructions=instructions,
        storage=storage,
        clock=clock,
        counter=counter,
        embedder=embedder,
        domain=domain is not None,
    )
    return wired(parts, _world(domain, parts) if domain is not None else None, archive_index)


def wired(
    parts: Parts, world: World | None = None, archive_index: VectorStore | None = None
) -> SessionGraph:
    """The session graph of some collaborators; see `build_session_graph`."""
    state, given = world.schemas() if world else (SessionState, SessionInput)
    graph: SessionGraph = StateGraph(state, context_schema=TurnOptions, input_schema=given)
    _add_nodes(graph, parts, archive_index, world)
    _add_edges(graph, Routes(bool(parts.window.tools), world.streams if world else ()))
    return graph


def _world(domain: Domain, parts: Parts) -> World:
    # Templates and schemas load libraries: only those who have a domain wait for them.
    from topicloom.graph.domain import World

    return World.of(domain, parts)


def _add_nodes(
    graph: SessionGraph, parts: Parts, archive: VectorStore | None, world: World | None
) -> None:
    settings, window, workspaces = parts.settings, parts.window, parts.workspaces
    desk = SearchDesk(
        roles=parts.roles,
        clock=parts.clock,
        activation=settings.activation,
        deep_share=settings.deep_share,
        limit=settings.index_topics,
        archive=ArchiveSearch(archive, settings.role_seconds) if archive is not None else None,
    )
    language = None if settings.language == "auto" else settings.language
    nodes: dict[str, Runnable[Any, Any]] = {
        "perceive": perceive(
            workspaces=workspaces,
            clock=parts.clock,
            adsorber=parts.adsorber,
            amnesia=parts.amnesia,
            rewriter=parts.roles.rewriter,
            language=language,
        ),
        "maintain": maintain(workspaces=workspaces),
        "estimate": estimate(
            workspaces=workspaces,
            window=window,
            policy=settings.split,
            skeleton=world.desk.expected if world else None,
        ),
        "split": split(
            workspaces=workspaces,
            roles=parts.roles,
            adsorber=parts.adsorber,
            size=parts.record_size,
            chunk_tokens=window.size // 2,
            topic_tokens=round(settings.topic_share * settings.topic_window),
            topics_shown=settings.index_topics,
            activation=settings.activation,
            language=language,
        ),
        "recall": recall(workspaces=workspaces, desk=desk, activation=settings.activation),
        "assemble": assemble(
            workspaces=workspaces,
            window=window,
            alone=isinstance(parts.roles.reader, EmbeddedReader),
        ),
        "activate": activate(workspaces=workspaces, desk=desk),
        "settle": settle(
            workspaces=workspaces,
            clock=parts.clock,
            activation=settings.activation,
            window_tokens=window.size,
            visible_messages=settings.visible_messages,
        ),
    }
    nodes |= world.nodes() if world else {}
    storage_retry = RetryPolicy(max_attempts=2, initial_interval=0.1, retry_on=OSError)
    for name, step in nodes.items():
        graph.add_node(name, step, retry_policy=storage_retry)
    reader = read_topic(workspaces=workspaces, roles=parts.roles)
    graph.add_node("read_topic", reader, input_schema=ReadTask, retry_policy=storage_retry)
    _add_main_window(graph, parts)


def _add_main_window(graph: SessionGraph, parts: Parts) -> None:
    settings, window = parts.settings, parts.window
    main = generate(
        workspaces=parts.workspaces,
        window=window,
        responder=parts.roles.responder,
        meter=parts.meter,
        hold_characters=settings.hold_characters,
        search_rounds=settings.search_rounds,
    )
    reply_retry = RetryPolicy(
        max_attempts=settings.reply_attempts, initial_interval=0.2, retry_on=ReplyError
    )
    graph.add_node("generate", main, retry_policy=reply_retry)
    if window.tools:
        graph.add_node("tools", ToolNode(list(window.tools)))


def _add_edges(graph: SessionGraph, routes: Routes) -> None:
    streams, planned = list(routes.streams), ["plan"] if routes.streams else []
    gather = ["recall", *(streams or ["generate"])]
    readers = ["read_topic", "assemble"]
    graph.add_conditional_edges(
        "perceive", routes.after_perceive, ["maintain", "estimate", *planned]
    )
    graph.add_conditional_edges("maintain", routes.after_maintain, ["estimate", "settle", *planned])
    graph.add_conditional_edges("estimate", routes.after_estimate, ["split", "settle", *gather])
    graph.add_conditional_edges("split", routes.after_split, ["settle", *gather])
    graph.add_conditional_edges("recall", routes.after_recall, [*readers, *streams])
    for name in ("read_topic", *streams):
        graph.add_edge(name, "assemble")
    graph.add_edge("assemble", "generate")
    called = ["tools"] if routes.tools else []
    edited = ["edit"] if streams else []
    graph.add_conditional_edges(
        "generate", routes.after_generate, ["activate", "settle", *called, *edited]
    )
    if called:
        graph.add_edge("tools", "generate")
    graph.add_conditional_edges("activate", routes.after_activate, readers)
    if not streams:
        graph.add_edge(START, "perceive")
    else:
        graph.add_conditional_edges(START, routes.begin, ["perceive", "decline"])
        graph.add_edge("decline", "refuse")
        graph.add_conditional_edges("plan", routes.after_plan, ["edit", "estimate"])
        graph.add_conditional_edges(
            "edit", routes.after_edit, ["estimate", "generate", "settle", *called]
        )
    graph.add_edge("settle", END)
