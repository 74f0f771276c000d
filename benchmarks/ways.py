"""Ways to keep a long chat on LangGraph: topicloom, the plain pattern, and two that summarise.

Each takes the same messages and gives the same replies; what differs is what is kept and how. A
way whose package is not installed is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, MessagesState, StateGraph

from topicloom import RESPONDER, Settings, build_session_graph, default_embedder, embedded_roles
from topicloom_lab.talk import Echo, said

Compile = Callable[[Any], Any]
"""Makes the runnable graph over a checkpointer."""

SMALL = 8_000
"""Tokens of the small window; the ways that summarise get it too."""
TRIGGER, KEEP = 0.7, 20
"""Share of the window from which something moves, and messages that stay: topicloom's defaults."""


class EchoModel(BaseChatModel):
    """A chat model that says what `Echo` says; a summary is as long as a summary may be."""

    echo: Any

    @property
    def _llm_type(self) -> str:
        return "echo"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        text = said(self.echo.turn, kwargs.get("characters", 300))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def topicloom(folder: Path, echo: Echo, window: int) -> Compile:
    """The session graph with embedded roles and a fixed reply."""
    roles = embedded_roles(default_embedder()).replace(RESPONDER, echo)
    settings = Settings(window=window, folder=folder)
    graph = build_session_graph(settings=settings, roles=roles, clock=echo.now)
    return lambda saver: graph.compile(checkpointer=saver)


def plain(echo: Echo) -> Compile:
    """Every message in the state."""

    def reply(state: MessagesState) -> dict[str, Any]:
        return {"messages": [("ai", said(echo.turn, 300))]}

    graph = StateGraph(MessagesState)
    graph.add_node("reply", reply)
    graph.add_edge(START, "reply")
    return lambda saver: graph.compile(checkpointer=saver)


def middleware(echo: Echo) -> Compile:
    """LangChain's agent with `SummarizationMiddleware`: the summary replaces the messages."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware

    model = EchoModel(echo=echo)
    summarizing = SummarizationMiddleware(
        model, trigger=("tokens", round(TRIGGER * SMALL)), keep=("messages", KEEP)
    )
    return lambda saver: create_agent(model, middleware=[summarizing], checkpointer=saver)


def langmem(echo: Echo) -> Compile:
    """LangMem's `SummarizationNode`: all messages stay, the model sees a running summary."""
    from langmem.short_term import SummarizationNode

    class State(MessagesState):
        context: dict[str, Any]
        summarized_messages: list[AnyMessage]

    def reply(state: State) -> dict[str, Any]:
        return {"messages": [("ai", said(echo.turn, 300))]}

    graph = StateGraph(State)
    model = EchoModel(echo=echo).bind(characters=1_000)
    limit = round(TRIGGER * SMALL)
    graph.add_node("summarize", SummarizationNode(model=model, max_tokens=limit))
    graph.add_node("reply", reply)
    graph.add_edge(START, "summarize")
    graph.add_edge("summarize", "reply")
    return lambda saver: graph.compile(checkpointer=saver)


WAYS: Mapping[str, Callable[[Path, Echo], Compile]] = {
    "topicloom 8k": lambda folder, echo: topicloom(folder, echo, SMALL),
    "topicloom 128k": lambda folder, echo: topicloom(folder, echo, 128_000),
    "plain": lambda folder, echo: plain(echo),
    "SummarizationMiddleware": lambda folder, echo: middleware(echo),
    "LangMem": lambda folder, echo: langmem(echo),
}
"""Makes a way over a folder, with the clock and the replies of an echo."""

PACKAGES: Mapping[str, str] = {"SummarizationMiddleware": "langchain", "LangMem": "langmem"}
"""The package of a way that is none of topicloom's own dependencies."""


def missing(way: str) -> str | None:
    """The package that a way lacks; None if it can run."""
    package = PACKAGES.get(way)
    return package if package and find_spec(package) is None else None
