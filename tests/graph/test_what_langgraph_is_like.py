"""What we lean on in LangGraph and LangChain beyond what they document.

Each place in the code says why there is no public way. A test that fails here after an upgrade says
which of them has to be looked at again; where one is public by now, the place goes.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, TypedDict

import pytest
from agents import ScriptedModel, open_agent, remember
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig, ensure_config
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.config import get_config
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from sessions import thread
from tables import each_row

from topicloom import Settings, build_session_graph
from topicloom.graph.middleware import _DURABILITY
from topicloom.hosting import CompiledSessionGraph
from topicloom.memory.stored import _find_owners
from topicloom.roles.tracing import _streams
from topicloom.testing import fake_roles


class Numbers(TypedDict):
    number: int


def build(node: Any) -> StateGraph[Numbers]:
    graph = StateGraph(Numbers)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph


class TestCompiling:
    """`SessionGraph.compile` gives what `StateGraph.compile` returns another class."""

    def test_it_returns_a_compiled_state_graph_and_no_other(self) -> None:
        assert type(build(lambda state: {}).compile()) is CompiledStateGraph

    def test_all_that_is_overridden_is_still_there(self) -> None:
        own = {
            name
            for name, value in vars(CompiledSessionGraph).items()
            if inspect.isfunction(value) and not name.startswith("_")
        }
        assert {"stream", "astream", "get_state", "bulk_update_state"} <= own
        assert not [name for name in own if not hasattr(CompiledStateGraph, name)]

    def test_a_copy_with_other_options_keeps_the_class(self, tmp_path: Path) -> None:
        settings = Settings(folder=tmp_path, fsync=False)
        graph = build_session_graph(settings=settings, roles=fake_roles()).compile()
        assert type(graph.with_config(tags=["x"])) is CompiledSessionGraph


class TestPartsOfAGraph:
    """A graph within another one is handed the other's checkpointer, by a key of the config."""

    @pytest.mark.parametrize("saver", [None, InMemorySaver()])
    def test_the_checkpointer_around_is_named(self, saver: InMemorySaver | None) -> None:
        seen = list[bool]()

        def look(state: Numbers) -> Numbers:
            seen.append(bool(get_config()["configurable"].get(CONFIG_KEY_CHECKPOINTER)))
            return state

        inner = build(look).compile()
        build(inner).compile(checkpointer=saver).invoke({"number": 1}, thread())
        assert seen == [saver is not None]

    def test_one_without_checkpoints_cannot_wait_for_them(self) -> None:
        """If this fails, `TopicMiddleware` need not set `_DURABILITY` any more."""
        inner = build(lambda state: {"number": 2}).compile(checkpointer=False)
        around = build(lambda state: inner.invoke(state)).compile(checkpointer=InMemorySaver())
        with pytest.raises(AttributeError):
            around.invoke({"number": 1}, thread(), durability="sync")

    def test_the_key_of_durability_is_what_it_was(self) -> None:
        inner = build(lambda state: {"number": 2}).compile(checkpointer=False)
        own: Any = inner.with_config(configurable={_DURABILITY: "async"})
        around = build(lambda state: own.invoke(state)).compile(checkpointer=InMemorySaver())
        assert around.invoke({"number": 1}, thread(), durability="sync") == {"number": 2}


class TestStreams:
    """Handlers that stream events are told from tracers by a method of theirs."""

    def test_the_messages_stream_taps(self) -> None:
        assert self.collect(lambda graph: list(graph.stream({"number": 1}, stream_mode="messages")))

    async def test_the_events_stream_taps(self) -> None:
        seen = list[BaseCallbackHandler]()
        graph = build(self.remember(seen)).compile()
        assert [event async for event in graph.astream_events({"number": 1}, version="v2")]
        assert any(_streams(handler) for handler in seen)

    def test_a_tracer_does_not(self) -> None:
        class Tracer(BaseCallbackHandler):
            pass

        config: RunnableConfig = {"callbacks": [Tracer()]}
        assert not self.collect(lambda graph: graph.invoke({"number": 1}, config))

    def collect(self, run: Any) -> bool:
        seen = list[BaseCallbackHandler]()
        run(build(self.remember(seen)).compile())
        return any(_streams(handler) for handler in seen)

    @staticmethod
    def remember(seen: list[BaseCallbackHandler]) -> Any:
        def node(state: Numbers) -> Numbers:
            around: Any = ensure_config()["callbacks"]
            seen.extend(around.handlers)
            return state

        return node


class TestAgents:
    """`Memory.of(agent, config)` finds the middleware by the hooks in the agent's nodes."""

    def test_the_hooks_of_a_middleware_are_found(self, tmp_path: Path) -> None:
        agent = open_agent(ScriptedModel(), remember(tmp_path))
        names = [name for name, _ in _find_owners(agent)]
        assert names[-1].endswith(".after_agent")
        assert names[-1] in agent.builder.nodes


class TestDeletion:
    """`delete_with_threads` puts methods of its own on a checkpointer."""

    @each_row("saver", [InMemorySaver, SqliteSaver, AsyncSqliteSaver])
    def test_a_checkpointer_deletes_by_two_methods(
        self, saver: type[BaseCheckpointSaver[Any]]
    ) -> None:
        deleting = {name for name in dir(saver) if name.endswith("delete_thread")}
        assert deleting == {"delete_thread", "adelete_thread"}
        assert not hasattr(saver, "__slots__") or "__dict__" in dir(saver)
