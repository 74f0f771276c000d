"""What OpenTelemetry is told of turns and reviews."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import ScriptedModel, call, open_agent, remember
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from openai_behaviours import Reply, Request, Status, Usage
from openai_server import OpenAIServer
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry_exports import Exported, exported
from sessions import chatter, last_receipt, open_graph, tell, thread

from topicloom import (
    FileStorage,
    Memory,
    ReplyError,
    Settings,
    TurnOptions,
    build_session_graph,
    reflect_once,
    review_session,
)
from topicloom.hosting import Graph, find_deps
from topicloom.testing import ScriptedResponder, fake_roles

__all__ = ["exported"]

TURN = "invoke_workflow topicloom"
SECRET = "heron"


def session_graph(server: OpenAIServer, folder: Path, **settings: Any) -> Graph:
    """A session whose main and cheap models are at a server."""
    options = {"folder": folder, "fsync": False, "window": 2_000, "max_retries": 0, **settings}
    known = {"model": "openai:strong", "cheap_model": "openai:cheap", "api_key": "k"}
    made = Settings.model_validate(options | known | {"base_url": server.base_url})
    return build_session_graph(settings=made).compile(checkpointer=InMemorySaver())


@pytest.mark.slow
def test_a_turn_is_a_trace_with_its_steps_and_calls(
    exported: Exported, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    openai_server.otherwise(Reply("Noted.", Usage(100, 7, 30)))
    tell(session_graph(openai_server, tmp_path), thread(), "The word is heron.")
    turn = exported.one(TURN)
    assert [s.name for s in exported.below(turn)] == [
        "topicloom.step.ingest",
        "topicloom.step.estimate",
        "topicloom.step.main_generate",
    ]
    (call,) = exported.below(exported.one("topicloom.step.main_generate"))
    assert (call.name, call.kind) == ("chat strong", SpanKind.CLIENT)
    wanted = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "strong",
        "gen_ai.conversation.id": "s",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 30,
        "topicloom.role": "responder",
    }
    assert wanted.items() <= (call.attributes or {}).items()


@pytest.mark.slow
def test_a_span_lies_within_the_one_around_it(exported: Exported, tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    tell(graph, thread(), *(chatter(tag, n) for n in range(2) for tag in ("茶", "船")), keep=1)
    spans = {s.context.span_id: s for s in exported.spans() if s.context}
    inner = [(s, spans[s.parent.span_id]) for s in spans.values() if s.parent]
    assert inner
    for span, around in inner:
        assert (around.start_time or 0) <= (span.start_time or 0)
        assert (span.end_time or 0) <= (around.end_time or 0) + 1_000_000  # times are rounded


@pytest.mark.slow
def test_what_was_quoted_is_told_by_its_ids(exported: Exported, tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    tell(graph, thread(), chatter("茶", 1), chatter("船", 1), chatter("山", 1), "海", keep=1)
    exported.clear()
    tell(graph, thread(), chatter("茶", 2))
    receipt = last_receipt(tmp_path, graph, thread())
    quotes = [q for note in receipt.quoted for q in note.quotes]
    turn, search = exported.one(TURN).attributes or {}, exported.one("search_memory").attributes
    assert search is not None
    assert quotes
    assert turn["topicloom.turn.quotes"] == tuple(quotes)
    assert search["gen_ai.memory.record.count"] == len(quotes)
    assert search["topicloom.search.scores"] == tuple(receipt.scores.values())


def test_a_split_is_a_step_with_the_calls_that_it_made(exported: Exported, tmp_path: Path) -> None:
    tell(open_graph(tmp_path), thread(), chatter("茶", 1), chatter("船", 1), keep=1)
    split = next(s for s in reversed(exported.spans()) if s.name == "topicloom.step.split")
    assert {s.name for s in exported.below(split)} == {
        "topicloom.role.splitter",
        "topicloom.role.brief",
    }


@pytest.mark.slow
@pytest.mark.parametrize("told", ["numbers", "contents"])
def test_what_was_said_is_told_only_if_a_setting_says_so(
    exported: Exported, openai_server: OpenAIServer, tmp_path: Path, told: str
) -> None:
    openai_server.otherwise(Reply(f"The {SECRET} is noted."))
    graph = session_graph(openai_server, tmp_path, telemetry=told, beginning="whole")
    tell(graph, thread(), f"My {SECRET} is called Mo.", "Something else", keep=1)
    tell(graph, thread(), f"What is my {SECRET} called?")
    written = "".join(span.to_json() for span in exported.spans())
    assert (SECRET in written) == (told == "contents")
    if told == "contents":
        last = exported.spans()[-1]
        turn = next(s for s in reversed(exported.spans()) if s.name == TURN)
        asked = json.loads(str((turn.attributes or {})["gen_ai.input.messages"]))
        assert last.name == "chat strong"
        assert asked[0]["parts"] == [{"type": "text", "content": f"What is my {SECRET} called?"}]


def test_nothing_is_told_where_it_is_off(exported: Exported, tmp_path: Path) -> None:
    tell(open_graph(tmp_path, telemetry="off"), thread(), "Hello")
    assert exported.spans() == []


def test_a_turn_that_fails_is_a_trace_with_its_error(exported: Exported, tmp_path: Path) -> None:
    responder = ScriptedResponder(RuntimeError(f"the {SECRET} broke"))
    graph = open_graph(tmp_path, fake_roles(responder), reply_attempts=1)
    with pytest.raises(ReplyError):
        tell(graph, thread(), "Hello")
    turn = exported.one(TURN)
    assert turn.status.status_code is StatusCode.ERROR
    assert (turn.attributes or {})["error.type"] == "ReplyError"
    assert SECRET not in turn.to_json()


@pytest.mark.slow
def test_a_role_that_fails_is_a_span_with_its_error(
    exported: Exported, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    def answer(request: Request) -> Reply | Status:
        return Status(500) if request["model"] == "cheap" else Reply("Noted.")

    openai_server.otherwise(answer)
    graph = session_graph(openai_server, tmp_path)
    tell(graph, thread(), "The tea is green.", "And the boat is blue.", keep=1)
    failed = [s for s in exported.spans() if s.name == "chat cheap"]
    assert failed
    assert {s.status.status_code for s in failed} == {StatusCode.ERROR}
    assert all(str((s.attributes or {})["error.type"]).endswith("Error") for s in failed)


def test_a_turn_is_a_part_of_what_the_application_traces(
    exported: Exported, tmp_path: Path
) -> None:
    with trace.get_tracer("shop").start_as_current_span("order") as order:
        tell(open_graph(tmp_path), thread(), "Hello")
    parent = exported.one(TURN).parent
    assert parent is not None
    assert parent.span_id == order.get_span_context().span_id


async def test_a_turn_on_an_event_loop_is_the_same_trace(
    exported: Exported, tmp_path: Path
) -> None:
    graph = open_graph(tmp_path)
    with trace.get_tracer("shop").start_as_current_span("order") as order:
        await graph.ainvoke({"messages": [("user", "Hello")]}, thread())
    parent = exported.one(TURN).parent
    assert parent is not None
    assert parent.span_id == order.get_span_context().span_id
    assert "topicloom.step.main_generate" in [s.name for s in exported.below(exported.one(TURN))]


def test_metrics_have_the_published_names_and_buckets(
    exported: Exported, openai_server: OpenAIServer, tmp_path: Path
) -> None:
    openai_server.otherwise(Reply("Noted.", Usage(100, 7)))
    before = {name: _sum(exported, name) for name in _NAMES}
    tell(session_graph(openai_server, tmp_path), thread(), "Hello")
    grown = {name: _sum(exported, name) - before[name] for name in _NAMES}
    assert grown["gen_ai.client.token.usage"] == 107
    assert grown["gen_ai.client.operation.duration"] > 0
    assert grown["topicloom.turn.duration"] > 0
    points = exported.points("gen_ai.client.token.usage")
    tokens = next(p for p in points if "gen_ai.provider.name" in p.attributes)
    assert tuple(tokens.explicit_bounds) == tuple(4.0**power for power in range(14))
    assert {
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.token.type",
        "topicloom.role",
    } == {*tokens.attributes}


_NAMES = (
    "gen_ai.client.token.usage",
    "gen_ai.client.operation.duration",
    "topicloom.turn.duration",
)


def _sum(exported: Exported, name: str) -> float:
    return float(sum(point.sum for point in exported.points(name)))


def test_a_review_is_a_trace_with_the_calls_that_it_made(
    exported: Exported, tmp_path: Path
) -> None:
    graph = open_graph(tmp_path)
    tell(graph, thread(), chatter("茶", 1), chatter("船", 1), keep=1)
    exported.clear()
    report = review_session(graph, thread())
    review = exported.one("topicloom.review")
    assert (review.attributes or {})["gen_ai.conversation.id"] == "s"
    told = [span.name for span in exported.below(review)]
    assert told
    assert sorted(told) == sorted(f"topicloom.role.{call.role}" for call in report.calls)


def test_an_agent_is_traced_as_a_session_is(exported: Exported, tmp_path: Path) -> None:
    agent = open_agent(ScriptedModel(), remember(tmp_path))
    agent.invoke({"messages": [("user", "Hello")]}, thread())
    names = [span.name for span in exported.below(exported.one(TURN))]
    assert (names[0], names[-1]) == ("topicloom.step.ingest", "chat ScriptedModel")


def test_an_agents_turn_that_fails_is_a_trace_with_its_error(
    exported: Exported, tmp_path: Path
) -> None:
    model = ScriptedModel(script=[RuntimeError(f"the {SECRET} broke")])
    agent = open_agent(model, remember(tmp_path))
    with pytest.raises(RuntimeError):
        agent.invoke({"messages": [("user", "Hello")]}, thread())
    turn = exported.one(TURN)
    assert turn.status.status_code is StatusCode.ERROR
    assert {"error.type": "RuntimeError", "gen_ai.conversation.id": "s"}.items() <= (
        turn.attributes or {}
    ).items()
    assert SECRET not in turn.to_json()


def test_a_tool_that_fails_ends_an_agents_turn_in_the_trace(
    exported: Exported, tmp_path: Path
) -> None:
    def weather(city: str) -> str:
        """The weather in a city."""
        raise LookupError(city)

    model = ScriptedModel(script=[call("weather", city=SECRET)])
    agent = open_agent(model, remember(tmp_path), tools=[weather])
    with pytest.raises(LookupError):
        agent.invoke({"messages": [("user", "Hello")]}, thread())
    assert (exported.one(TURN).attributes or {})["error.type"] == "LookupError"


def reflect(folder: Path, external: Any = None) -> None:
    """Reflect upon a session of one message."""
    saver, store = InMemorySaver(), InMemoryStore()
    graph = open_graph(folder, checkpointer=saver, store=store)
    tell(graph, thread(), "I'm allergic to peanuts.")
    options: Any = {"external": external} if external else {}
    options |= {"checkpointer": saver, "storage": FileStorage(folder), "store": store}
    reflect_once("s", force=True, roles=find_deps(graph).roles, **options)


def test_a_reflection_is_a_trace_with_the_calls_that_it_made(
    exported: Exported, tmp_path: Path
) -> None:
    reflect(tmp_path)
    reflection = next(s for s in exported.spans() if s.name == "topicloom.reflection")
    told = reflection.attributes or {}
    assert (told["gen_ai.conversation.id"], told["topicloom.reflection.facts"]) == ("s", 1)
    assert [s.name for s in exported.below(reflection)] == ["topicloom.role.reflector"]


def test_a_reflection_that_fails_is_a_trace_with_its_error(
    exported: Exported, tmp_path: Path
) -> None:
    def fail(session: str) -> None:
        raise LookupError(SECRET)

    with pytest.raises(LookupError):
        reflect(tmp_path, fail)
    reflection = exported.one("topicloom.reflection")
    assert reflection.status.status_code is StatusCode.ERROR
    assert (reflection.attributes or {})["error.type"] == "LookupError"
    assert SECRET not in reflection.to_json()


@pytest.mark.slow
@pytest.mark.parametrize("by", ["graph", "agent", "storage"])
def test_what_a_person_changes_is_a_trace_without_what_was_said(
    exported: Exported, tmp_path: Path, by: str
) -> None:
    graph: Any = open_graph(tmp_path)
    if by == "agent":
        graph = open_agent(ScriptedModel(), remember(tmp_path), context_schema=TurnOptions)
    tell(graph, thread(), chatter("茶", 1), chatter("船", 1), chatter("山", 1), keep=1)
    files = FileStorage(tmp_path)
    memory = Memory(files, "s") if by == "storage" else Memory.of(graph, thread(), author="ann")
    topic = memory.topics()[0].id
    exported.clear()
    memory.rename(topic, SECRET)
    memory.forget("m1")
    memory.undo()
    memory.delete()
    spans = [s for s in exported.spans() if "memory" in s.name]
    assert [s.name for s in spans] == [
        "update_memory",
        "delete_memory",
        "update_memory",
        "delete_memory_store",
    ]
    for span in spans:
        told = span.attributes or {}
        assert span.status.status_code is StatusCode.UNSET
        assert told["gen_ai.operation.name"] == span.name
        assert told["gen_ai.memory.store.id"] == told["gen_ai.conversation.id"] == "s"
        assert SECRET not in span.to_json()
    first, second, *_ = [span.attributes or {} for span in spans]
    assert first["topicloom.memory.topics"] == (topic,)
    assert second["gen_ai.memory.record.count"] == 1
    assert {first["topicloom.memory.author"]} == {"user" if by == "storage" else "ann"}


@pytest.mark.slow
def test_opentelemetry_is_not_needed(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["opentelemetry"] = None
from topicloom import Settings, build_session_graph, local_checkpointer
graph = build_session_graph(settings=Settings(folder={str(tmp_path)!r}))
app = graph.compile(checkpointer=local_checkpointer({str(tmp_path)!r}))
state = app.invoke({{"messages": "Hello!"}}, {{"configurable": {{"thread_id": "t"}}}})
print(state["messages"][-1].content)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("Kept."), done.stderr
