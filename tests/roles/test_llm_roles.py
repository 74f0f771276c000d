"""Roles that chat models play, against a server that does what servers do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypedDict

import openai
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from openai_behaviours import Behaviour, CutStream, Empty, Garbage, Hang, Reply, Status, Usage
from openai_server import OpenAIServer

from topicloom import (
    Answer,
    Assignment,
    Brief,
    BriefRequest,
    BriefWriter,
    LocalRole,
    Quote,
    Reader,
    Reading,
    ReadRequest,
    Rewriter,
    RewriteRequest,
    Role,
    RoleName,
    Route,
    Router,
    RouteRequest,
    SplitRequest,
    Splitter,
    StoredMessage,
    Topic,
    TopicWindow,
    UnusableAnswerError,
)
from topicloom.context.prefix import PrefixMeter
from topicloom.effects import arun_step, run_step
from topicloom.prompts.loader import load_prompt
from topicloom.prompts.wording import get_wording
from topicloom.roles.brief import ChatBriefWriter
from topicloom.roles.calls import ask_role
from topicloom.roles.chat import Chat
from topicloom.roles.models import open_model
from topicloom.roles.reader import ChatReader
from topicloom.roles.rewriter import ChatRewriter
from topicloom.roles.router import ChatRouter
from topicloom.roles.splitter import ChatSplitter
from topicloom.state.language import Language
from topicloom.state.rounds import group_rounds

OAK = Topic(id="t1", name="Oak table", brief="A table of oak.")
KYOTO = Topic(id="t2", name="Kyoto", brief="A journey.")


def stored(first: int, last: int) -> list[StoredMessage]:
    return [
        StoredMessage(
            seq=n,
            role="user" if n % 2 else "assistant",
            text=f"word {n}",
            time="2026-03-01T10:00:00+00:00",
        )
        for n in range(first, last + 1)
    ]


READ = ReadRequest("s", [TopicWindow(OAK, stored(1, 6))], stored(7, 9), "And the price?", "en")
ACTIVE = frozenset(["t1"])
SPLIT = SplitRequest(
    "s", group_rounds(stored(1, 6)), [1.0, 1.0, -1.0], [OAK, KYOTO], None, ACTIVE, None, "en"
)
ROUTE = RouteRequest("s", "oak", stored(1, 3), [OAK, KYOTO], {}, None, "en")
BRIEF = BriefRequest("s", OAK, stored(1, 4), "en")
REWRITE = RewriteRequest("s", "And there?", stored(1, 4), "en")

GOOD: dict[RoleName, str] = {
    "reader": "<topic_result><relevance_score>0.5</relevance_score><referenced_messages>m3\nm1"
    "</referenced_messages><summary>They chose oak.</summary></topic_result>",
    "splitter": '<topic_split><assignment msg_id="m1-m4" topic="existing_active" topic_id="t1"/>'
    '<assignment msg_id="m5-m6" topic="new" topic_name="Tea"><summary>Of tea.</summary>'
    "</assignment></topic_split>",
    "router": '<topic_routing><matched_topics><topic id="t1" relevance="high">oak</topic>'
    "</matched_topics></topic_routing>",
    "brief": "<topic_brief><name>Table</name><brief>Of a table.</brief></topic_brief>",
    "rewriter": "<query>And in Kyoto?</query>",
}
VALUES: dict[RoleName, object] = {
    "reader": (
        Reading(
            topic="t1",
            score=0.5,
            quotes=(Quote(id="m3", weight=0.5), Quote(id="m1", weight=0.5)),
            summary="They chose oak.",
        ),
    ),
    "splitter": (
        *(Assignment(f"m{n}", "t1") for n in range(1, 5)),
        *(Assignment(f"m{n}", None, "Tea", "Of tea.") for n in (5, 6)),
    ),
    "router": Route({"t1": 0.9}),
    "brief": Brief("Table", "Of a table."),
    "rewriter": "And in Kyoto?",
}
REQUESTS: dict[RoleName, Any] = {
    "reader": READ,
    "splitter": SPLIT,
    "router": ROUTE,
    "brief": BRIEF,
    "rewriter": REWRITE,
}
ROLES: dict[RoleName, Callable[[Chat], Role[Any, Any]]] = {
    "reader": ChatReader,
    "splitter": ChatSplitter,
    "router": ChatRouter,
    "brief": ChatBriefWriter,
    "rewriter": ChatRewriter,
}


def chat(server: OpenAIServer, deadline: float | None = None, **settings: Any) -> Chat:
    options: dict[str, Any] = {"base_url": server.base_url, "timeout": 5, "max_retries": 0}
    model = open_model("openai:gpt-4o", api_key="test", **options | settings)
    return Chat.of(model, PrefixMeter(), deadline=deadline)


def called(role: Role[Any, Any], request: object, how: str) -> Answer[Any]:
    return role.call(request) if how == "sync" else asyncio.run(role.acall(request))


names = pytest.mark.parametrize("name", ROLES)
ways = pytest.mark.parametrize("how", ["sync", "async"])


@names
@ways
def test_each_role_reads_its_models_answer_and_cost(
    openai_server: OpenAIServer, name: RoleName, how: str
) -> None:
    openai_server.then(Reply(GOOD[name], Usage(70, 30, cached=20)))
    answer = called(ROLES[name](chat(openai_server)), REQUESTS[name], how)
    assert answer.value == VALUES[name]
    assert answer.remarks == ()
    usage = answer.usage
    assert usage is not None
    assert (usage.model, usage.input_tokens, usage.output_tokens) == ("gpt-4o", 70, 30)
    assert (usage.cached_tokens, usage.repeated) == (20, 0.0)
    (request,) = openai_server.requests
    roles = [m["role"] for m in request["messages"]]
    assert roles == ["system"] + ["user"] * (len(roles) - 1)
    assert request["messages"][0]["content"].startswith(load_prompt(name, "en"))


@names
@ways
def test_an_unusable_answer_is_asked_for_once_more(
    openai_server: OpenAIServer, name: RoleName, how: str
) -> None:
    openai_server.then(Reply("I'd rather not.", Usage(10, 5)), Reply(GOOD[name], Usage(30, 15, 6)))
    request = replace(REQUESTS[name], language="zh")
    answer = called(ROLES[name](chat(openai_server)), request, how)
    assert answer.value == VALUES[name]
    assert [r.partition(":")[0] for r in answer.remarks] == ["asked again"]
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (40, 20)
    assert answer.usage.cached_tokens == 6
    assert 0.5 < (answer.usage.repeated or 0) < 0.75
    first, second = (r["messages"] for r in openai_server.requests)
    assert second[: len(first)] == first
    said, complaint = second[len(first) :]
    assert said == {"role": "assistant", "content": "I'd rather not."}
    assert complaint["content"] in [
        get_wording("zh").complaint.format(form=form)
        for form in (
            '{"topics": [...]}',
            "<topic_split>",
            "<topic_routing>",
            "<topic_brief>",
            "<query>",
        )
    ]


@names
@ways
def test_two_unusable_answers_are_a_failure(
    openai_server: OpenAIServer, name: RoleName, how: str
) -> None:
    openai_server.then(Empty(), Reply("<topic_"))
    with pytest.raises(UnusableAnswerError):
        called(ROLES[name](chat(openai_server)), REQUESTS[name], how)
    second = openai_server.requests[1]["messages"]
    assert all(m["content"] for m in second), "an empty answer is not sent back"


FAILURES: list[tuple[Behaviour, type[Exception]]] = [
    (Status(401), openai.AuthenticationError),
    (Status(429, retry_after=0.01), openai.RateLimitError),
    (Status(500), openai.InternalServerError),
    (CutStream(after_chunks=2), openai.APIConnectionError),
    (Hang(5), openai.APITimeoutError),
    (Garbage(), ValueError),
]


@ways
@pytest.mark.parametrize(("behaviour", "error"), FAILURES)
def test_what_the_client_raises_is_raised(
    openai_server: OpenAIServer, behaviour: Behaviour, error: type[Exception], how: str
) -> None:
    openai_server.then(behaviour)
    with pytest.raises(error):
        called(ChatReader(chat(openai_server, timeout=0.3)), READ, how)


@ways
@pytest.mark.parametrize("behaviour", [Status(429, retry_after=0.01), Status(503, retry_after=0)])
def test_an_overloaded_server_is_asked_again(
    openai_server: OpenAIServer, behaviour: Behaviour, how: str
) -> None:
    openai_server.then(behaviour, Reply(GOOD["reader"]))
    answer = called(ChatReader(chat(openai_server, max_retries=1)), READ, how)
    assert answer.value == VALUES["reader"]
    assert answer.remarks == ()


def test_on_the_event_loop_nobody_elses_threads_wait_for_an_overloaded_server(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = list[float]()
    monkeypatch.setattr(time, "sleep", slept.append)
    openai_server.then(Status(429, retry_after=1), Reply(GOOD["reader"]))
    assert called(ChatReader(chat(openai_server, max_retries=1)), READ, "async").remarks == ()
    assert 1.0 not in slept


@pytest.mark.slow
@ways
def test_failures_and_deadlines_cost_the_contribution_only(
    openai_server: OpenAIServer, how: str
) -> None:
    drive: Any = run_step if how == "sync" else lambda step: asyncio.run(arun_step(step))
    openai_server.then(Status(500, message="down"), Hang(5))
    value, call = drive(ask_role("reader", ChatReader(chat(openai_server)), READ, "t1"))
    assert value is None
    assert call.failure is not None
    assert "down" in call.failure
    late = ChatReader(chat(openai_server, deadline=0.2, timeout=1))
    value, call = drive(ask_role("reader", late, READ, "t1"))
    assert value is None
    assert call.failure == "no answer within 0.2 s"


def test_an_answer_that_cannot_be_accounted_for_is_none() -> None:
    class Odd(LocalRole[ReadRequest, tuple[Reading, ...]]):
        def call(self, request: ReadRequest) -> Answer[tuple[Reading, ...]]:
            odd: Any = (3,)
            return Answer((Reading(topic="t1", score=0.5),), remarks=odd)

    value, call = run_step(ask_role("reader", Odd(), READ, "t1"))
    assert value is None
    assert call.failure is not None


def read(server: OpenAIServer, text: str, request: ReadRequest = READ) -> Reading:
    server.then(Reply(text))
    (reading,) = ChatReader(chat(server)).call(request).value
    return reading


def test_a_faint_topic_hands_nothing_over(openai_server: OpenAIServer) -> None:
    text = GOOD["reader"].replace("0.5", "0.29")
    assert read(openai_server, text) == Reading(topic="t1", score=0.29)


def test_a_long_summary_is_cut(openai_server: OpenAIServer) -> None:
    text = GOOD["reader"].replace("They chose oak.", "oak " * 2_000)
    summary = read(openai_server, text).summary
    assert len(summary) <= 2_000
    assert summary.endswith("…")


def test_the_next_prompt_of_a_topic_repeats_the_last(openai_server: OpenAIServer) -> None:
    openai_server.otherwise(Reply(GOOD["reader"]))
    reader = ChatReader(chat(openai_server))
    reader.call(READ)
    usage = reader.call(replace(READ, tail=stored(7, 11))).usage
    assert usage is not None
    assert usage.repeated is not None
    assert usage.repeated > 0.9
    other = reader.call(replace(READ, session="another")).usage
    assert other is not None
    assert other.repeated == 0


def test_assignments_that_cannot_be_followed_are_told(openai_server: OpenAIServer) -> None:
    text = (
        '<assignment msg_id="m1" topic="existing_active" topic_id="t9">'
        '<assignment msg_id="m2" topic="existing_active" topic_id="t8" topic_name="Tea">'
        '<assignment msg_id="m3" topic="new" topic_name="KYOTO">'
        '<assignment msg_id="m4-m5,m77" topic="existing_active" topic_id="t1">'
    )
    openai_server.then(Reply(text))
    answer = ChatSplitter(chat(openai_server)).call(SPLIT)
    assert answer.value == (
        Assignment("m2", None, "Tea"),
        Assignment("m3", "t2", "KYOTO"),
        Assignment("m4", "t1"),
        Assignment("m5", "t1"),
    )
    assert answer.remarks == (
        "1 id was not to be assigned: m77",
        "2 topics do not exist: t9, t8",
        "2 messages are not assigned: m1, m6",
    )


def test_references_to_topics_that_are_not_there_are_told(openai_server: OpenAIServer) -> None:
    text = (
        '<assignment msg_id="m1-m2" topic="existing_active" topic_id="t1" also="topic-2, t9">'
        '<assignment msg_id="m3-m6" topic="new" topic_name="Tea" also="t1">'
    )
    openai_server.then(Reply(text))
    answer = ChatSplitter(chat(openai_server)).call(SPLIT)
    assert answer.value == (
        *(Assignment(f"m{n}", "t1", also=("t2",)) for n in (1, 2)),
        *(Assignment(f"m{n}", None, "Tea", also=("t1",)) for n in range(3, 7)),
    )
    assert answer.remarks == ("1 reference is to no topic: t9",)


def test_a_sub_topic_is_known_by_its_last_name_if_no_other_has_it(
    openai_server: OpenAIServer,
) -> None:
    names = ["House / Kitchen", "House / Bills", "Car / Bills"]
    topics = [Topic(id=f"t{n}", name=name) for n, name in enumerate(names, start=1)]
    text = "".join(
        f'<assignment msg_id="m{n}" topic="new" topic_name="{name}">'
        for n, name in enumerate(["kitchen", "Bills", "Car / bills"], start=1)
    )
    openai_server.then(Reply(text))
    answer = ChatSplitter(chat(openai_server)).call(replace(SPLIT, topics=topics))
    assert [a.topic for a in answer.value] == ["t1", None, "t3"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_division_says_what_is_to_be_divided(
    openai_server: OpenAIServer, language: Language
) -> None:
    openai_server.then(Reply(GOOD["splitter"].replace("existing_active", "new")))
    request = replace(SPLIT, topics=[], active=frozenset(), dividing=OAK, language=language)
    ChatSplitter(chat(openai_server)).call(request)
    *_, last = openai_server.requests[-1]["messages"]
    assert last["content"].splitlines()[:2] == [
        get_wording(language).dividing,
        "Oak table: A table of oak.",
    ]
    assert get_wording(language).dividing in load_prompt("splitter", language)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_brief_writer_is_told_what_a_topic_is_part_of_and_which_others_there_are(
    openai_server: OpenAIServer, language: Language
) -> None:
    openai_server.then(Reply(GOOD["brief"]))
    others = {"Kyoto": "A journey.", "=== Part of ===": "many words " * 2_000}
    request = replace(BRIEF, within=("House", "Rooms"), others=others, language=language)
    ChatBriefWriter(chat(openai_server)).call(request)
    *_, last = openai_server.requests[-1]["messages"]
    words, lines = get_wording(language), last["content"].splitlines()
    assert lines[:3] == [words.part_of, "House / Rooms", words.rest]
    assert lines[3].startswith("Kyoto: A")
    assert lines[4].startswith("\\===")
    assert lines[5] == words.former_brief
    assert len(last["content"]) < 8_000


def test_topics_that_are_no_candidates_are_dropped(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply('<topic id="t7" relevance="high"><topic id="t2" relevance="low">'))
    answer = ChatRouter(chat(openai_server)).call(ROUTE)
    assert answer.value == Route({"t2": 0.3})
    assert answer.remarks == ("1 topic is no candidate: t7",)


@pytest.mark.parametrize(
    "text",
    [
        '<topic_routing><matched_topics><topic id="t7" relevance="high">why</topic>'
        "</matched_topics></topic_routing>",
        "<topic_routing>\n<matched_topics>\n",
        '<topic_routing>\n<matched_topics>\n<topic id="t',
    ],
    ids=["strangers alone", "cut", "cut within a topic"],
)
def test_a_route_to_nothing_that_was_offered_is_none(
    openai_server: OpenAIServer, text: str
) -> None:
    openai_server.then(Reply(text), Reply(text))
    with pytest.raises(UnusableAnswerError):
        ChatRouter(chat(openai_server)).call(ROUTE)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_router_sees_whole_briefs_page_by_page(
    openai_server: OpenAIServer, language: Language
) -> None:
    topics = [Topic(id=f"t{n}", name=f"n{n}", brief=f"word{n} " * 100) for n in range(1, 201)]
    openai_server.otherwise(Reply("<matched_topics></matched_topics>"))
    small = replace(chat(openai_server), window=8_000)
    seen, pages = 0, 0
    while seen < len(topics):
        left = topics[seen:]
        route = ChatRouter(small).call(replace(ROUTE, topics=left, language=language)).value
        sent = openai_server.requests[-1]["messages"][-1]["content"]
        page = left[: route.seen]
        assert all(f"[{t.id}] {t.name}: {t.brief.strip()}" in sent for t in page)
        assert sent.count("[t") == len(page)
        seen, pages = seen + len(page), pages + 1
    assert pages > 2


def test_a_reason_for_finding_nothing(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply("<topic_routing><no_match_reason>nothing on it</no_match_reason>"))
    assert ChatRouter(chat(openai_server)).call(ROUTE).value == Route({}, "nothing on it")


def test_a_topic_keeps_its_name_if_none_is_given(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply("<brief>Of a table."))
    answer = ChatBriefWriter(chat(openai_server)).call(BRIEF)
    assert answer.value == Brief("Oak table", "Of a table.")


def test_usage_is_estimated_where_none_is_reported() -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage(GOOD["reader"])]))
    answer = ChatReader(Chat.of(model, PrefixMeter(), window=8_000)).call(READ)
    assert answer.usage is not None
    assert answer.usage.model == "GenericFakeChatModel"
    assert 300 < answer.usage.input_tokens < 1_000
    assert 30 < answer.usage.output_tokens < 100


@pytest.mark.slow
def test_prompts_stay_within_a_small_window(openai_server: OpenAIServer) -> None:
    openai_server.then(Reply(GOOD["reader"], Usage(1, 1)))
    role = Chat(chat(openai_server).model, chat(openai_server).counter, PrefixMeter(), 3_000)
    assert role.prompt_window.limit == int(2_250 / 1.15)
    ChatReader(role).call(replace(READ, windows=[TopicWindow(OAK, stored(1, 3_000))]))
    said = openai_server.requests[0]["messages"]
    assert sum(role.counter.text(m["content"]) + 4 for m in said) <= role.prompt_window.limit


class _State(TypedDict):
    score: float


@ways
def test_no_token_gets_into_the_stream_of_a_graph(openai_server: OpenAIServer, how: str) -> None:
    openai_server.then(Reply("no"), Reply(GOOD["reader"]))
    reader = ChatReader(chat(openai_server))

    def node(state: _State) -> _State:
        return {"score": reader.call(READ).value[0].score}

    async def anode(state: _State) -> _State:
        return {"score": (await reader.acall(READ)).value[0].score}

    builder = StateGraph(_State)
    builder.add_node("read", node if how == "sync" else anode)
    builder.add_edge(START, "read")
    builder.add_edge("read", END)
    graph = builder.compile()

    async def astreamed() -> list[Any]:
        return [part async for part in graph.astream({"score": 0.0}, stream_mode=modes)]

    modes: Any = ["messages", "values"]
    streamed: list[Any] = (
        list(graph.stream({"score": 0.0}, stream_mode=modes))
        if how == "sync"
        else asyncio.run(astreamed())
    )
    assert [mode for mode, _ in streamed] == ["values", "values"]
    assert streamed[-1][1] == {"score": 0.5}


def test_the_roles_keep_their_contracts(openai_server: OpenAIServer) -> None:
    one = chat(openai_server, deadline=3)
    reader: Reader = ChatReader(one)
    splitter: Splitter = ChatSplitter(one)
    router: Router = ChatRouter(one)
    writer: BriefWriter = ChatBriefWriter(one)
    rewriter: Rewriter = ChatRewriter(one)
    assert {r.deadline for r in (reader, splitter, router, writer, rewriter)} == {3}


def test_what_langchains_cache_answers_is_counted() -> None:
    """It reports a cost of 0, and no tokens, where the model reported nothing."""
    model = FakeListChatModel(responses=["<query>the oak table</query>", "not asked"])
    set_llm_cache(InMemoryCache())
    try:
        answers = [ChatRewriter(Chat.of(model, PrefixMeter())).call(REWRITE) for _ in range(2)]
    finally:
        set_llm_cache(None)
    assert {answer.value for answer in answers} == {"the oak table"}
    assert len({answer.usage.input_tokens for answer in answers if answer.usage}) == 1
