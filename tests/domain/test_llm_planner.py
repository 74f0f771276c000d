"""The chat model as a planner, against a server that does what servers do."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from domains import the_document
from openai_behaviours import Behaviour, Empty, Garbage, Hang, Reply, Status, Usage as Reported
from openai_server import OpenAIServer

from topicloom import Call, PlanRequest, StoredMessage, TurnPlan
from topicloom.context.prefix import PrefixMeter
from topicloom.domain.plan import SearchIntent
from topicloom.domain.planner import ChatPlanner
from topicloom.effects import arun_step, run_step
from topicloom.prompts.loader import load_prompt
from topicloom.prompts.wording import get_wording
from topicloom.roles.calls import ask_role
from topicloom.roles.chat import Chat
from topicloom.roles.models import open_model
from topicloom.state.language import Language

REQUEST = PlanRequest(
    session="s",
    query="That key, does it open the temple?",
    tail=[
        StoredMessage(seq=1, role="assistant", text="The elder has a key.", time="2026-03-02T09:00")
    ],
    document=the_document(),
    events=the_document()["events"][:2],
    templates={"combat": "for fights", "default": ""},
    previous=None,
    language="en",
)
PLANNED = (
    "<turn_plan><kind>narrative</kind><focus>q_001</focus><goal>Tell of the key.</goal>"
    "<template>combat</template><keywords>temple key; elder</keywords><when>past</when></turn_plan>"
)
EDIT = (
    '<turn_plan><kind>state_edit</kind><edits>[["SET", "item_sword_01.count", 3]]</edits>'
    "<reply>Three swords now.</reply></turn_plan>"
)
ways = pytest.mark.parametrize("how", ["sync", "async"])


def planner(server: OpenAIServer, *, deadline: float = 5) -> ChatPlanner:
    model = open_model("openai:gpt-4o", base_url=server.base_url, timeout=1, max_retries=0)
    return ChatPlanner(Chat.of(model, PrefixMeter(), deadline=deadline))


def asked(role: ChatPlanner, request: PlanRequest, how: str) -> tuple[TurnPlan | None, Call]:
    step = ask_role("planner", role, request)
    return run_step(step) if how == "sync" else asyncio.run(arun_step(step))


@ways
def test_a_plan_is_read_with_its_cost(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Reply(PLANNED, Reported(700, 40, cached=200)))
    plan, call = asked(planner(openai_server), REQUEST, how)
    assert plan == TurnPlan(
        focus="q_001",
        goal="Tell of the key.",
        template="combat",
        search=SearchIntent(keywords=("temple key", "elder"), when="past"),
    )
    assert (call.model, call.failure, call.remarks) == ("gpt-4o", None, ())
    assert (call.input_tokens, call.output_tokens, call.cached_tokens) == (700, 40, 200)


@ways
def test_an_edit_comes_with_its_reply(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Reply(EDIT))
    plan, _ = asked(planner(openai_server), REQUEST, how)
    assert plan is not None
    assert plan.edits == (("SET", "item_sword_01.count", 3),)
    assert plan.reply == "Three swords now."
    assert len(openai_server.requests) == 1


@ways
def test_what_does_not_exist_is_dropped_with_a_remark(
    openai_server: OpenAIServer, how: str
) -> None:
    openai_server.then(Reply("<focus>q_0</focus><goal>Go</goal><template>nope</template>"))
    plan, call = asked(planner(openai_server), REQUEST, how)
    assert plan == TurnPlan(goal="Go")
    assert call.remarks == (
        "1 focus is no active event: q_0",
        "1 template does not exist: nope",
    )


@ways
def test_it_is_asked_once_more(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Reply("Let me think."), Reply(PLANNED))
    plan, call = asked(planner(openai_server), REQUEST, how)
    assert plan is not None
    assert call.remarks[0].startswith("asked again: no plan")
    assert "<turn_plan>" in openai_server.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_example_said_again_is_no_plan(openai_server: OpenAIServer, language: Language) -> None:
    example = load_prompt("planner", language).split("\n\n<turn_plan>")[1].split("</turn_plan>")[0]
    openai_server.then(Reply(f"<turn_plan>{example}</turn_plan>"), Reply(PLANNED))
    plan, call = asked(planner(openai_server), replace(REQUEST, language=language), "sync")
    assert plan is not None
    assert plan.focus == "q_001"
    assert "of the prompt's example" in call.remarks[0]


@ways
@pytest.mark.parametrize("behaviour", [Status(500), Garbage(), Empty(), Reply("No."), Hang(5)])
def test_a_failure_is_no_plan(openai_server: OpenAIServer, behaviour: Behaviour, how: str) -> None:
    openai_server.otherwise(behaviour)
    plan, call = asked(planner(openai_server, deadline=0.2), REQUEST, how)
    assert plan is None
    assert call.failure


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_planner_is_sent_document_talk_and_message(
    openai_server: OpenAIServer, language: Language
) -> None:
    openai_server.then(Reply(PLANNED))
    planner(openai_server).call(replace(REQUEST, language=language))
    words = get_wording(language)
    system, data, tail, message = [m["content"] for m in openai_server.requests[0]["messages"]]
    assert system == load_prompt("planner", language)
    assert data.startswith(f"{words.templates}\n- combat: for fights\n- default\n{words.data}\n")
    assert '{"id": "item_sword_01", "count": 1, "name": "Iron Sword"}' in data
    assert '_anchor: "inventory"' in data
    assert data.split(words.events)[1].count("q_00") == 2
    assert "The elder has a key." in tail
    assert message == f"{words.message}\n{REQUEST.query}"


@pytest.mark.slow
def test_a_large_document_is_cut(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply(PLANNED))
    items = [{"id": f"item_{n}", "name": "Something of a name"} for n in range(20_000)]
    model = open_model("openai:gpt-4o", base_url=openai_server.base_url, max_retries=0)
    role = ChatPlanner(Chat.of(model, PrefixMeter(), window=16_000))
    role.call(replace(REQUEST, document={"items": items}, events=items))
    assert len(str(openai_server.requests[0]["messages"])) < 80_000


def test_a_planner_without_data_is_told_that_there_is_none(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply(PLANNED))
    empty = replace(REQUEST, document={}, events=[], tail=[])
    plan = planner(openai_server).call(empty).value
    assert plan.focus is None
    contents = [m["content"] for m in openai_server.requests[0]["messages"]]
    assert contents[2] == get_wording("en").nothing
