"""Endless memory in agents that have other middleware, answer in a form, or sit in other graphs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from pathlib import Path
from typing import Annotated, Any

import pytest
from agents import ScriptedModel, call, open_agent, remember
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    PIIMiddleware,
    TodoListMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import BaseModel
from sessions import chatter, check_kept, kept, thread

from topicloom import get_session
from topicloom.hosting import get_text

PAST = [HumanMessage(chatter("茶", n)) for n in range(20)]


def ask(agent: Any, text: str = "茶呢？", **more: Any) -> dict[str, Any]:
    state: dict[str, Any] = agent.invoke({"messages": [HumanMessage(text)], **more}, thread())
    return state


def kept_texts(folder: Path, agent: Any) -> list[str]:
    session = get_session(agent, thread())
    return [m.text for m in check_kept(kept(folder, session), session)]


@pytest.mark.parametrize("first", [True, False])
def test_what_a_hook_edits_before_the_model_is_edited_in_what_it_is_shown(
    tmp_path: Path, first: bool
) -> None:
    model = ScriptedModel(script=[call("look"), "好。", "再见。"])
    memory = remember(tmp_path, settings={"on_edit": "purge"})
    redaction = PIIMiddleware("email", strategy="redact")
    both: list[Any] = [memory, redaction] if first else [redaction, memory]

    def look() -> str:
        """Look."""
        return "seen"

    agent = open_agent(model, *both, tools=[look])
    for text in ("茶：a.writer@example.com", "还有呢？"):
        ask(agent, text)
    assert len(model.prompts) == 3
    for prompt in model.prompts:
        (shown,) = [m.text for m in prompt if "茶：" in m.text]
        assert shown.endswith("茶：[REDACTED_EMAIL]")
    stored = b"".join(f.read_bytes() for f in tmp_path.rglob("*.jsonl"))
    assert b"a.writer" not in stored
    assert len(kept_texts(tmp_path, agent)) == 6


def test_what_was_said_is_kept_where_the_model_fails_beside_another_turn(tmp_path: Path) -> None:
    saver = InMemorySaver()
    model = ScriptedModel(script=["好。", RuntimeError("no server")])
    late = open_agent(model, remember(tmp_path), checkpointer=saver)

    class Meanwhile(AgentMiddleware):
        """Has another process, with nothing of what is around, begin and fail."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            with ThreadPoolExecutor(1) as other, pytest.raises(RuntimeError, match="no server"):
                other.submit(Context().run, ask, late, "茶二。").result()
            return handler(request)

    ask(late, "茶一。")
    ask(open_agent(ScriptedModel(), remember(tmp_path), Meanwhile(), checkpointer=saver), "茶三。")
    ask(late, "茶四。")
    said = [text for text in kept_texts(tmp_path, late) if text.startswith("茶")]
    assert sorted(said) == sorted(["茶一。", "茶二。", "茶三。", "茶四。"])


@pytest.mark.slow
def test_beside_a_to_do_list_a_retry_and_a_cache(tmp_path: Path) -> None:
    failed = list[str]()
    seen = list[Any]()

    def weather(city: str) -> str:
        """The weather in a city."""
        if not failed:
            failed.append(city)
            raise ValueError("not now")
        return f"{city}，晴。"

    class Cache(AgentMiddleware):
        """Sees what is sent last of all, as what caches prompts does."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            seen.append((request.system_message, request.messages))
            return handler(request.override(model_settings={"stop": ["x"]}))

    todos = [{"content": "茶", "status": "pending"}]
    model = ScriptedModel(
        script=[call("write_todos", todos=todos), call("weather", city="罗马"), "晴。"]
    )
    agent = open_agent(
        model,
        remember(tmp_path),
        TodoListMiddleware(),
        ToolRetryMiddleware(max_retries=1, initial_delay=0.0),
        Cache(),
        tools=[weather],
        system_prompt=SystemMessage([{"type": "text", "text": "App.", "cache_control": {"a": 1}}]),
    )
    agent.invoke({"messages": [*PAST, HumanMessage("罗马那次说了什么？")]}, thread())
    state = agent.get_state(thread()).values
    assert state["todos"] == todos
    assert failed == ["罗马"]
    assert [m.type for m in state["messages"][-6:]] == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert kept_texts(tmp_path, agent) == [get_text(m) for m in state["messages"]]
    system, messages = seen[0]
    assert system.content[0] == {"type": "text", "text": "App.", "cache_control": {"a": 1}}
    assert "<memory>" in get_text(messages[-1])
    assert len(messages) < 12


def test_a_person_decides_on_a_call(tmp_path: Path) -> None:
    def book(what: str) -> str:
        """Books something."""
        return f"{what}，订好了。"

    model = ScriptedModel(script=[call("book", what="酒店"), "好了。"])
    agent = open_agent(
        model,
        remember(tmp_path),
        HumanInTheLoopMiddleware(interrupt_on={"book": True}),
        tools=[book],
    )
    assert "__interrupt__" in ask(agent, "订酒店。")
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread())
    assert kept_texts(tmp_path, agent) == ["订酒店。", "", "酒店，订好了。", "好了。"]


def test_answers_in_a_form_and_a_state_of_its_own(tmp_path: Path) -> None:
    class Answer(BaseModel):
        """An answer."""

        degrees: int

    class Own(AgentState[Any]):
        session: str
        mood: Annotated[str, "how the user feels"]

    model = ScriptedModel(script=[call("Answer", degrees=7)])
    agent = open_agent(
        model, remember(tmp_path), response_format=ToolStrategy(Answer), state_schema=Own
    )
    state = ask(agent, "几？", session="mine", mood="good")
    assert (state["structured_response"], state["session"]) == (Answer(degrees=7), "mine")
    model.script = [call("Answer", 2, degrees=8)]
    assert ask(agent, "再来？")["mood"] == "good"
    assert len(kept_texts(tmp_path, agent)) == 6


@pytest.mark.slow
def test_in_the_store_of_the_agent(tmp_path: Path) -> None:
    store = InMemoryStore()
    agent = open_agent(model := ScriptedModel(), remember(tmp_path, storage="store"), store=store)
    agent.invoke({"messages": [*PAST, HumanMessage("茶呢？")]}, thread())
    assert "<memory>" in model.prompt
    assert store.search(())
    assert not list(tmp_path.iterdir())


def test_two_agents_in_one_graph_do_not_mix(tmp_path: Path) -> None:
    models = [ScriptedModel(), ScriptedModel()]
    memory = remember(tmp_path)
    agents = [create_agent(m, middleware=[memory], checkpointer=True) for m in models]
    around = StateGraph(MessagesState)
    for name, agent in zip("ab", agents, strict=True):
        around.add_node(name, agent)
    around.add_conditional_edges(START, lambda s: s["messages"][-1].name)
    graph = around.compile(checkpointer=InMemorySaver())
    for name, text in (("a", "雨：一"), ("b", "山：二"), ("a", "雨：三")):
        graph.invoke({"messages": [HumanMessage(text, name=name)]}, thread())
    sent = [[get_text(m) for m in model.prompts[-1] if m.type == "human"] for model in models]
    assert "雨：三" in sent[0][-1]
    assert "山：二" in sent[1][-1]


async def test_in_a_deep_agent(tmp_path: Path) -> None:
    deepagents = pytest.importorskip("deepagents", reason="pip install deepagents, to test with it")
    model = ScriptedModel(script=[call("write_file", file_path="/a.txt", content="茶")])
    memory = remember(tmp_path, name="SummarizationMiddleware")
    agent = deepagents.create_deep_agent(
        model=model, middleware=[memory], checkpointer=InMemorySaver()
    )
    for text in ("写。", *(chatter("茶", n) for n in range(20)), "茶呢？"):
        state = await agent.ainvoke({"messages": [HumanMessage(text)]}, thread())
    assert "<memory>" in model.prompt
    assert state["files"]
    assert kept_texts(tmp_path, agent) == [get_text(m) for m in state["messages"]]
    assert len(state["messages"]) == 46
