"""What LangGraph 1.2 and LangChain 1.4 brought: typed receipts, short traces, deltas, hooks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from uuid import NAMESPACE_OID, uuid5

import pytest
from agents import ScriptedModel, call, open_agent, remember
from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, RemoveMessage
from langchain_core.messages.utils import convert_to_messages
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from sessions import open_graph, past, record, thread

from topicloom import Receipt, ReceiptStream, SessionState, TopicLoomWarning

SAID: Any = {"messages": [("user", "茶呢？")]}
pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")


@pytest.mark.slow
async def test_receipts_are_a_typed_stream(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    record(graph, thread(), *past("茶", "雨", rounds=8))
    with graph.stream_events(SAID, thread(), version="v3") as run:
        (receipt,) = run.extensions["receipts"]
    assert isinstance(receipt, Receipt)
    assert receipt.scores
    async with await graph.astream_events(SAID, thread(), version="v3") as arun:
        (later,) = [r async for r in arun.extensions["receipts"]]
    assert later.turn == receipt.turn + 1


def test_so_they_are_in_an_agent_and_in_a_part_of_a_graph(tmp_path: Path) -> None:
    agent = open_agent(ScriptedModel(), remember(tmp_path / "agent"))
    with agent.stream_events(SAID, thread(), version="v3") as run:
        (receipt,) = run.extensions["receipts"]
    assert receipt.turn == 1
    around = StateGraph(SessionState)
    around.add_node("session", open_graph(tmp_path / "part"))
    around.add_edge(START, "session")
    around.add_edge("session", END)
    whole = around.compile(checkpointer=InMemorySaver(), transformers=[ReceiptStream])
    with whole.stream_events(SAID, thread(), version="v3") as run:
        found = [r for part in run.subgraphs for r in part.extensions["receipts"]]
    assert [r.turn for r in found] == [1]


class Tracer(BaseTracer):
    """Keeps what a service for traces would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self._take(run)

    def _take(self, run: Run) -> None:
        self.seen.append(run)
        for child in run.child_runs:
            self._take(child)


STEPS = {"ingest", "estimate", "retrieve", "read_topic", "assemble", "main_generate", "finalize"}


@pytest.mark.slow
@pytest.mark.parametrize("shown", [False, True])
def test_traces_have_the_names_of_steps_and_more_if_asked(tmp_path: Path, shown: bool) -> None:
    graph, tracer = open_graph(tmp_path, trace_steps=shown), Tracer()
    record(graph, thread(), *past("茶", "雨", rounds=8))
    graph.invoke(SAID, {**thread(), "callbacks": [tracer]})
    steps = [run for run in tracer.seen if run.name in STEPS]
    assert {run.name for run in steps} == STEPS
    assert {bool(run.inputs or run.outputs) for run in steps} == {shown}
    (whole,) = [run for run in tracer.seen if run.parent_run_id is None]
    assert "茶呢？" in str(whole.inputs)


@pytest.mark.parametrize("shown", [False, True])
def test_so_they_are_for_an_agent(tmp_path: Path, shown: bool) -> None:
    memory = remember(tmp_path, settings={"trace_steps": shown})
    agent, tracer = open_agent(ScriptedModel(), memory), Tracer()
    agent.invoke(SAID, {**thread(), "callbacks": [tracer]})
    hooks = [run for run in tracer.seen if run.name.startswith("TopicMiddleware.")]
    assert len(hooks) >= 3
    assert {bool(run.inputs or run.outputs) for run in hooks} == {shown}


def fold(known: Any, writes: Any) -> Any:
    """The messages behind several updates of them."""
    for write in writes:
        known = add_messages(known or [], name_messages(write, len(known or [])))
    return known


def name_messages(write: Any, count: int) -> Any:
    """Messages with an id each: LangGraph would give those without one another at each load."""
    messages = convert_to_messages(write if isinstance(write, list) else [write])
    for place, message in enumerate(messages, count):
        message.id = message.id or str(uuid5(NAMESPACE_OID, f"{place} {message.content}"))
    return messages


class DeltaState(AgentState[Any]):
    """An agent's state whose checkpoints hold what each step adds to the messages."""

    messages: Annotated[list[Any], DeltaChannel(fold)]


class Trim(AgentMiddleware[Any, Any, Any]):
    """Leaves the newest messages in the state, before each call of the model."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        newest = state["messages"][-2:]
        return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *newest]}


def weather(city: str) -> str:
    """The weather."""
    return "rain"


def test_a_hook_that_removes_what_was_never_kept_is_named(tmp_path: Path) -> None:
    script = [call("weather", n, city="Oslo") for n in range(3)]
    agent = open_agent(ScriptedModel(script=script), remember(tmp_path), Trim(), tools=[weather])
    with pytest.warns(TopicLoomWarning, match="removed 4 messages of the running turn"):
        agent.invoke(SAID, thread())
    # What was kept before may go.
    agent.invoke({"messages": [("user", "雨呢？")]}, thread())


TURNS = 12


@pytest.mark.slow
def test_an_agents_messages_in_a_channel_of_deltas(tmp_path: Path) -> None:
    """They are the same, their checkpoints a fraction; going back in time works too."""
    sizes: dict[str, int] = {}
    told: dict[str, list[str]] = {}
    for name, state in (("whole", None), ("deltas", DeltaState)):
        saver = InMemorySaver()
        memory = remember(tmp_path / name)
        agent = open_agent(ScriptedModel(), memory, checkpointer=saver, state_schema=state)
        for n in range(TURNS):
            agent.invoke({"messages": [HumanMessage(f"茶：第{n}句。" + "词" * 500)]}, thread())
        told[name] = [m.content for m in agent.get_state(thread()).values["messages"]]
        sizes[name] = sum(len(blob) for _, blob in saver.blobs.values())
        turns = [c for c in agent.get_state_history(thread()) if not c.next]
        back = agent.invoke({"messages": [HumanMessage("雨：另一句")]}, turns[3].config)
        kept = 2 * (TURNS - 3)
        assert [m.content for m in back["messages"]][:kept] == told[name][:kept]
        assert len(back["messages"]) == kept + 2
    assert told["whole"] == told["deltas"]
    assert sizes["deltas"] < sizes["whole"] / 3
