"""Agents to test: a chat model that plays a script, and a memory with a small window."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from pydantic import Field

from topicloom import Settings, TopicMiddleware
from topicloom.hosting import get_text
from topicloom.testing import Clock, fake_roles

Reply = Any
"""A text, a message, or an exception to raise."""


class ScriptedModel(BaseChatModel):
    """Plays a script, then says `otherwise`; keeps what it was sent, and with which tools."""

    script: list[Reply] = Field(default_factory=list, repr=False)
    otherwise: Reply = "All right, noted."
    prompts: list[list[BaseMessage]] = Field(default_factory=list, repr=False)
    offered: list[list[str]] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)
    shared: Any = Field(default=None, repr=False)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        names = [t.name if hasattr(t, "name") else t["name"] for t in tools]
        return self.model_copy(update={"tools": names, "shared": self.shared or self})

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        whole = self._next(messages)
        words = get_text(whole).split(" ")
        for place, word in enumerate(words):
            text = word if place == len(words) - 1 else f"{word} "
            yield ChatGenerationChunk(message=AIMessageChunk(content=text, id=whole.id))
        calls = [
            {"name": c["name"], "args": json.dumps(c["args"]), "id": c["id"], "index": n}
            for n, c in enumerate(whole.tool_calls)
        ]
        last = AIMessageChunk(
            content="", tool_call_chunks=calls, id=whole.id, chunk_position="last"
        )
        yield ChatGenerationChunk(message=last)

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        own = self.shared or self
        own.prompts.append(messages)
        own.offered.append(self.tools)
        said = own.script.pop(0) if own.script else own.otherwise
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, AIMessage) else AIMessage(said)

    @property
    def prompt(self) -> str:
        """The text of the newest prompt."""
        return "\n".join(get_text(m) for m in self.prompts[-1])


def call(name: str, number: int = 1, **args: Any) -> AIMessage:
    """A reply that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{name}-{number}"}])


def remember(folder: Path, **options: Any) -> TopicMiddleware:
    """The middleware over a folder, with fake roles."""
    given = {"window": 1_000, "recall_tokens": 250, "fsync": False, "folder": folder}
    settings = Settings.model_validate(given | options.pop("settings", {}))
    return TopicMiddleware(
        settings=settings, **{"roles": fake_roles(), "clock": Clock(), **options}
    )


def open_agent(
    model: BaseChatModel,
    *middleware: AgentMiddleware[Any, Any, Any],
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    checkpointer: Any = None,
    **options: Any,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """An agent with some middleware."""
    return create_agent(
        model, tools, middleware=middleware, checkpointer=checkpointer or InMemorySaver(), **options
    )
