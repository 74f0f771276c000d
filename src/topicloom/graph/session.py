"""The session graph: which node follows which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy, Send

from topicloom.context.options import TurnOptions
from topicloom.context.tokens import TokenCounter
from topicloom.errors import ReplyError
from topicloom.graph.parts import Parts, make_parts, models_of
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
from topicloom.nodes.step import turn_options
from topicloom.roles.base import RoleName
from topicloom.roles.choice import Model
from topicloom.roles.team import Roles
from topicloom.settings import Settings
from topicloom.state.channels import ReadTask, SessionInput, SessionState
from topicloom.state.session import Session, Turn
from topicloom.storage.base import Storage

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

    Raises:
        ConfigurationError: If a model cannot be opened or a setting cannot be used.
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
    )
    graph: SessionGraph = StateGraph(
        SessionState, context_schema=TurnOptions, input_schema=SessionInput
    )
    _add_nodes(graph, parts)
    _add_edges(graph, bool(parts.window.tools))
    return graph


def _add_nodes(graph: SessionGraph, parts: Parts) -> None:
    settings, window, workspaces = parts.settings, parts.window, parts.workspaces
    desk = SearchDesk(
        roles=parts.roles,
        clock=parts.clock,
        activation=settings.activation,
        deep_share=settings.deep_share,
        limit=settings.index_topics,
    )
    language = None if settings.language == "auto" else settings.language
    nodes: dict[str, Runnable[Any, Any]] = {
        "perceive": perceive(
            workspaces=workspaces,
            clock=parts.clock,
            adsorber=parts.adsorber,
            amnesia=parts.amnesia,
            arbiter=parts.roles.arbiter,
            rewriter=parts.roles.rewriter,
            language=language,
        ),
        "maintain": maintain(workspaces=workspaces),
        "estimate": estimate(workspaces=workspaces, window=window, policy=settings.split),
        "split": split(
            workspaces=workspaces,
            roles=parts.roles,
            adsorber=parts.adsorber,
            size=parts.record_size,
            chunk_tokens=window.size // 2,
            topic_tokens=round(settings.topic_share * settings.topic_window),
            activation=settings.activation,
            language=language,
        ),
        "recall": recall(workspaces=workspaces, desk=desk, activation=settings.activation),
        "assemble": assemble(workspaces=workspaces, window=window),
        "activate": activate(workspaces=workspaces, desk=desk),
        "settle": settle(
            workspaces=workspaces,
            clock=parts.clock,
            activation=settings.activation,
            window_tokens=window.size,
            visible_messages=settings.visible_messages,
        ),
    }
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


def _add_edges(graph: SessionGraph, has_tools: bool) -> None:
    graph.add_edge(START, "perceive")
    # A planner takes its place here, between what was said and what it costs to answer it.
    graph.add_conditional_edges("perceive", _after_perceive, ["maintain", "estimate"])
    graph.add_conditional_edges("maintain", _after_maintain, ["estimate", "settle"])
    graph.add_conditional_edges(
        "estimate", _after_estimate, ["split", "recall", "generate", "settle"]
    )
    graph.add_conditional_edges("split", _after_split, ["recall", "settle"])
    graph.add_conditional_edges("recall", _fan_out, ["read_topic", "assemble"])
    graph.add_edge("read_topic", "assemble")
    graph.add_edge("assemble", "generate")
    after_generate = ["activate", "settle", *(["tools"] if has_tools else [])]
    graph.add_conditional_edges("generate", _after_generate, after_generate)
    if has_tools:
        graph.add_edge("tools", "generate")
    graph.add_conditional_edges("activate", _fan_out, ["read_topic", "assemble"])
    graph.add_edge("settle", END)


def _after_perceive(state: SessionState) -> str:
    return "maintain" if turn_options().changes else "estimate"


def _after_maintain(state: SessionState) -> str:
    turn = Turn.model_validate(state["turn"])
    return "estimate" if turn.said or turn.answer else "settle"


def _after_estimate(state: SessionState) -> str:
    if state["turn"].get("plan"):
        return "split"
    if not state["turn"].get("answer", True):
        return "settle"
    # Until the first split there is nothing to recall: one model call, as in any chat.
    return "recall" if state["session"].get("topics") else "generate"


def _after_split(state: SessionState) -> str:
    return "recall" if state["turn"].get("answer", True) else "settle"


def _fan_out(state: SessionState) -> list[Send] | str:
    """One reader for each topic that has to be read."""
    turn = Turn.model_validate(state["turn"])
    session = Session.model_validate(state["session"]).for_readers()
    seen = session.model_dump(mode="json", exclude_defaults=True)
    tasks = [ReadTask(topic=t, session=seen, query=turn.query) for t in turn.unread]
    return [Send("read_topic", task) for task in tasks] or "assemble"


def _after_generate(state: SessionState) -> str:
    if state["turn"].get("request"):
        return "activate"
    last = state["messages"][-1]
    return "tools" if getattr(last, "tool_calls", None) else "settle"
