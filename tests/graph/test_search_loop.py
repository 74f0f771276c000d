"""Looking further back: the model's own `activate_topic`, and cues of the user's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from sessions import (
    check_kept,
    chunks_of,
    events_of,
    kept,
    last_receipt,
    open_after,
    open_graph,
    past,
    prompt_of,
    record,
    spoken,
    tell,
    thread,
    transcript_of,
    windows_of,
)

from topicloom import (
    Answer,
    Quote,
    Reading,
    ReadRequest,
    Roles,
    Route,
    RouteRequest,
    TurnOptions,
    get_session,
)
from topicloom.hosting import Graph, get_text
from topicloom.prompts.wording import get_wording
from topicloom.testing import (
    FailingRole,
    FixedRole,
    NameRouter,
    ScriptedReply,
    ScriptedResponder,
    SteadyReader,
    fake_roles,
    make_tool_call,
    make_topic_search,
)

CONFIG = thread()
ASLEEP = {"floor": 0, "base": 0.9, "step": 0.0}
"""Nothing wakes but for a router's 1.0, and what is split falls asleep."""
ONE_AWAKE = {"floor": 0, "usual": 1, "ceiling": 1}
ROOM_FOR_ONE = {"floor": 1, "usual": 1}


@dataclass
class ReaderOfQueries(SteadyReader):
    """Quotes the second message for a search, and nothing for the turn's own message."""

    def call(self, request: ReadRequest) -> Answer[tuple[Reading, ...]]:
        readings = []
        for window, reading in zip(request.windows, super().call(request).value, strict=True):
            quotes = (Quote(id=window.messages[2].id, weight=0.5),) if request.sought else ()
            readings.append(reading.model_copy(update={"quotes": quotes}))
        return Answer(tuple(readings))


@dataclass
class PageRouter(NameRouter):
    """Looks at one candidate at a time, or says that it looked at another number."""

    page: int = 1

    def call(self, request: RouteRequest) -> Answer[Route]:
        answer = super().call(replace(request, topics=request.topics[:1]))
        return Answer(replace(answer.value, seen=self.page))


def asleep(folder: Path, roles: Roles, *tags: str, **settings: Any) -> Graph:
    """A session whose topics all sleep."""
    graph = open_graph(folder, roles, **{"activation": ASLEEP, **settings})
    record(graph, CONFIG, *past(*tags))
    graph.invoke(
        {"messages": [HumanMessage("On to something else")]},
        CONFIG,
        context=TurnOptions(answer=False, keep_messages=0),
    )
    assert get_session(graph, CONFIG).active == {}
    return graph


class TestModelAsks:
    @pytest.mark.slow
    def test_what_is_found_is_read_and_the_reply_follows(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_topic_search("the tea"), "Ah, the tea.")
        reader, router = SteadyReader(), NameRouter({"茶": 1.0})
        roles = fake_roles(responder, reader=reader, router=router)
        graph = asleep(tmp_path, roles, "茶", "雨")
        assert spoken(graph, CONFIG, "What about it?") == "Ah, the tea."
        assert [w.topic.name for w in windows_of(reader)] == ["茶"]
        assert router.requests[0].query == "the tea"
        first, second = responder.requests
        assert "<memory>" not in prompt_of(first).replace("`<memory>`", "")
        assert transcript_of(tmp_path, graph, CONFIG)[0].text in prompt_of(second)
        receipt = last_receipt(tmp_path, graph, CONFIG)
        assert receipt.abandoned == 1
        assert receipt.activated == ("t1",)
        assert [(s.query, s.found) for s in receipt.searches] == [("the tea", ("t1",))]
        assert [c.role for c in receipt.calls] == ["responder", "router", "reader", "responder"]

    def test_the_abandoned_reply_reaches_nobody(self, tmp_path: Path) -> None:
        text = "Let me think about"
        responder = ScriptedResponder(make_topic_search("tea", text=text), "Tea it was.")
        roles = fake_roles(responder, router=NameRouter({"茶": 1.0}))
        graph = asleep(tmp_path, roles, "茶", "雨")
        chunks = chunks_of(graph, {"messages": [HumanMessage("Well?")]}, CONFIG)
        assert "".join(map(get_text, chunks)) == "Tea it was."
        assert not any(getattr(c, "tool_call_chunks", None) for c in chunks)
        said = transcript_of(tmp_path, graph, CONFIG)[-2:]
        assert [r.text for r in said] == ["Well?", "Tea it was."]
        channel = graph.get_state(CONFIG).values["messages"]
        assert not any(text in get_text(m) or getattr(m, "tool_calls", None) for m in channel)

    @pytest.mark.slow
    async def test_the_same_on_the_event_loop(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_topic_search("tea", text="Hm"), "Tea it was.")
        roles = fake_roles(responder, router=NameRouter({"茶": 1.0}))
        graph = asleep(tmp_path, roles, "茶", "雨")
        said = {"messages": [HumanMessage("Well?")]}
        parts: Any = graph.astream(said, CONFIG, stream_mode="messages")
        assert "".join([get_text(m) async for m, _ in parts]) == "Tea it was."

    @pytest.mark.slow
    @pytest.mark.parametrize("days", ["", "2026-03-02"])
    def test_an_active_topic_is_read_anew_for_what_is_looked_for(
        self, tmp_path: Path, days: str
    ) -> None:
        query = make_topic_search("the rain", when=days)
        responder = ScriptedResponder("Fine.", query, "It rained.")
        reader = ReaderOfQueries()
        roles = fake_roles(responder, reader=reader, router=NameRouter({"雨": 0.9}))
        graph = open_after(past("雨", "茶"), tmp_path, roles)
        tell(graph, CONFIG, "Hello", keep=0)
        reader.requests.clear()
        tell(graph, CONFIG, "And that?")
        *before, again = reader.requests
        assert sorted(w.topic.name for r in before for w in r.windows) == ["茶", "雨"]
        assert {(r.query, r.sought) for r in before} == {("And that?", "")}
        assert [w.topic.name for w in again.windows] == ["雨"]
        assert again.query == "the rain"
        assert again.sought.startswith("the rain")
        assert days in again.sought
        rain = transcript_of(tmp_path, graph, CONFIG)[2].text
        assert [rain in prompt_of(r) for r in responder.requests[-2:]] == [False, True]
        assert set(last_receipt(tmp_path, graph, CONFIG).scores) == {"t1", "t2"}

    @pytest.mark.slow
    def test_what_the_turn_itself_split_is_read(self, tmp_path: Path) -> None:
        """Out of view now, though there is no room to activate it."""
        reader = SteadyReader()
        roles = fake_roles(reader=reader)
        graph = open_after(
            past("茶", "雨", "山"), tmp_path, roles, activation=ROOM_FOR_ONE, window=4_000
        )
        tell(graph, CONFIG, "Hello", keep=0)
        assert sorted(w.topic.name for w in windows_of(reader)) == sorted("茶雨山")
        reader.requests.clear()
        tell(graph, CONFIG, "Hello again")
        assert sum(w.whole for w in windows_of(reader)) == 1

    @pytest.mark.slow
    def test_at_most_two_rounds_and_then_it_has_to_answer(self, tmp_path: Path) -> None:
        script: list[ScriptedReply] = [
            make_topic_search("one"),
            make_topic_search("two"),
            "I give up.",
        ]
        responder = ScriptedResponder(*script)
        graph = asleep(tmp_path, fake_roles(responder, router=NameRouter({})), "茶", "雨")
        assert spoken(graph, CONFIG, "Well?") == "I give up."
        offered = [[t.name for t in r.tools] for r in responder.requests]
        assert offered == [["activate_topic"], ["activate_topic"], []]
        assert last_receipt(tmp_path, graph, CONFIG).abandoned == 2

    def test_summaries_are_in_no_checkpoint_behind_the_note(self, tmp_path: Path) -> None:
        """Otherwise a checkpoint held those of each search, of every topic that it read anew."""
        summary = "Much has been said. " * 50
        responder = ScriptedResponder(make_topic_search("one"), make_topic_search("two"), "So.")
        reader = SteadyReader(summary=summary)
        graph = open_after(past("茶", "雨"), tmp_path, fake_roles(responder, reader=reader))
        tell(graph, CONFIG, "Well?", keep=0)
        assert len(reader.requests) == 3
        held = [str(s.values.get("readings")) for s in graph.get_state_history(CONFIG)]
        assert max(text.count("Much has been said. " * 50) for text in held) == 2

    @pytest.mark.slow
    @pytest.mark.parametrize("with_tools", [False, True])
    def test_a_call_that_was_not_offered_does_not_break_the_turn(
        self, tmp_path: Path, with_tools: bool
    ) -> None:
        """Some models call tools that they have seen before, offered or not."""

        def weather(city: str) -> str:
            """The weather in a city."""
            return "Sunny."

        responder = ScriptedResponder(
            make_topic_search("one"),
            make_topic_search("two"),
            make_topic_search("three", text="Hm."),
            "Well then.",
        )
        roles = fake_roles(responder, router=NameRouter({}))
        tools = [weather] if with_tools else []
        graph = asleep(tmp_path, roles, "茶", "雨", tools=tools)
        tell(graph, CONFIG, "Well?")
        session = get_session(graph, CONFIG)
        transcript = check_kept(kept(tmp_path, session), session)
        reply = transcript[-1].message
        assert isinstance(reply, AIMessage)
        assert get_text(reply)
        assert reply.tool_calls == []
        tell(graph, CONFIG, "And now?")

    def test_the_number_of_rounds_is_a_setting(self, tmp_path: Path) -> None:
        responder = ScriptedResponder("No.")
        graph = asleep(tmp_path, fake_roles(responder), "茶", "雨", search_rounds=0)
        tell(graph, CONFIG, "Well?")
        assert [list(r.tools) for r in responder.requests] == [[]]

    def test_no_match_is_an_answer(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_topic_search("unicorns"), "Never heard of them.")
        graph = asleep(tmp_path, fake_roles(responder, router=NameRouter({})), "茶", "雨")
        assert spoken(graph, CONFIG, "What about unicorns?") == "Never heard of them."
        note = prompt_of(responder.requests[-1]).rpartition("<memory>")[2]
        assert "unicorns" in note
        receipt = last_receipt(tmp_path, graph, CONFIG)
        assert receipt.activated == ()
        assert [(s.query, s.found) for s in receipt.searches] == [("unicorns", ())]
        assert receipt.searches[0].reason

    @pytest.mark.slow
    def test_a_search_that_adds_nothing_says_so(self, tmp_path: Path) -> None:
        """Otherwise the model would be asked the very same again, and search again."""
        responder = ScriptedResponder("Fine.", make_topic_search("tea"), "I know no more.")
        roles = fake_roles(responder, router=NameRouter({"茶": 0.9}))
        graph = open_after(past("茶", "雨"), tmp_path, roles, embedder="hashing")
        tell(graph, CONFIG, "Hello", keep=0)
        tell(graph, CONFIG, "And the tea?")
        before, after = (prompt_of(r) for r in responder.requests[-2:])
        assert before != after
        assert "“tea”" in after

    def test_candidates_that_cannot_be_told_apart_are_asked_about(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_topic_search("the trip"), "Do you mean 茶 or 雨?")
        roles = fake_roles(responder, router=NameRouter({"茶": 0.5, "雨": 0.45, "山": 0.1}))
        graph = open_after(past("茶", "雨", "山", rounds=3), tmp_path, roles, activation=ONE_AWAKE)
        tell(graph, CONFIG, "The trip", keep=0)
        note = prompt_of(responder.requests[-1]).rpartition("<memory>")[2]
        assert "“茶”" in note
        assert "“雨”" in note
        assert "“山”" not in note

    @pytest.mark.slow
    def test_two_that_are_both_meant_for_sure_may_be_asked_about(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_topic_search("the trip"), "Do you mean 茶 or 雨?")
        route = Route({"t1": 0.9, "t2": 0.9, "t3": 0.9}, alternatives=("t1", "t2"))
        roles = fake_roles(responder, router=FixedRole(route))
        graph = asleep(tmp_path, roles, "茶", "雨", "山")
        tell(graph, CONFIG, "The trip")
        note = prompt_of(responder.requests[-1]).rpartition("<memory>")[2]
        assert get_wording("zh").ask_which.format(names="“茶”, “雨”") in note
        (search,) = last_receipt(tmp_path, graph, CONFIG).searches
        assert search.candidates == ("t1", "t2")

    @pytest.mark.slow
    def test_all_candidates_are_looked_at_until_one_is_meant(self, tmp_path: Path) -> None:
        router = PageRouter({"雨": 0.6, "山": 0.9})
        responder = ScriptedResponder(make_topic_search("the hill"), "Here.", "Well.")
        roles = fake_roles(responder, router=router)
        graph = asleep(tmp_path, roles, "茶", "雨", "山", "海", embedder="hashing")
        tell(graph, CONFIG, "Well?")
        (search,) = last_receipt(tmp_path, graph, CONFIG).searches
        assert [r.topics[0].name for r in router.requests] == ["茶", "雨", "山"]
        assert set(search.found) <= {"t2", "t3"}
        assert search.scope.briefs == 3

    def test_a_router_that_looks_at_nothing_is_stood_in_for(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_topic_search("茶"), "在这里。")
        router = PageRouter({}, page=0)
        graph = asleep(tmp_path, fake_roles(responder, router=router), "雨", "茶")
        tell(graph, CONFIG, "之前的茶呢？")
        receipt = last_receipt(tmp_path, graph, CONFIG)
        (failed, stood_in) = (c for c in receipt.calls if c.role == "router")
        assert (failed.failure, stood_in.model) == (
            "ValueError: a router has to look at one topic at least, not 0",
            "embedded",
        )
        assert receipt.searches[0].scope.briefs == 2
        assert receipt.searches[0].found

    @pytest.mark.slow
    def test_days_without_a_topic_give_way_to_others(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_topic_search("tea", when="2025-06-01"), "No.")
        router = NameRouter({"茶": 1.0})
        graph = asleep(tmp_path, fake_roles(responder, router=router), "茶", "雨")
        tell(graph, CONFIG, "The tea of June?")
        (request,) = router.requests
        assert (request.when, len(request.topics)) == (None, 2)
        missed = get_wording("zh").other_days.format(missed="2025-06-01")
        assert missed in prompt_of(responder.requests[-1])

    def test_when_is_a_range_of_days(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_topic_search("anything", when="last year"), "No.")
        router = NameRouter({"茶": 1.0})
        graph = open_graph(tmp_path, fake_roles(responder, router=router), activation=ASLEEP)
        old = past("茶", "雨")
        for message in old[:8]:
            message.additional_kwargs["time"] = "2025-06-01T10:00:00+08:00"
        record(graph, CONFIG, *old)
        tell(graph, CONFIG, "Last year?", keep=0)
        (request,) = router.requests
        assert [t.name for t in request.topics] == ["茶"]
        assert request.when is not None
        assert "2025" in request.when

    @pytest.mark.slow
    @pytest.mark.parametrize("when", ["whenever", "", "  ", "二三十天前", 7, None, ["may"]])
    def test_a_time_that_says_nothing_is_no_limit(self, tmp_path: Path, when: object) -> None:
        responder = ScriptedResponder(make_topic_search("tea", when=when), "Yes.")
        router = NameRouter({"茶": 1.0})
        graph = asleep(tmp_path, fake_roles(responder, router=router), "茶", "雨")
        assert spoken(graph, CONFIG, "Well?") == "Yes."

    @pytest.mark.slow
    @pytest.mark.parametrize("args", [{}, {"query": 7}, {"query": ""}, {"query": None, "x": 1}])
    def test_odd_arguments_are_no_error(self, tmp_path: Path, args: dict[str, Any]) -> None:
        responder = ScriptedResponder(make_tool_call("activate_topic", args), "Never mind.")
        graph = asleep(tmp_path, fake_roles(responder), "茶", "雨")
        assert spoken(graph, CONFIG, "Well?") == "Never mind."

    @pytest.mark.slow
    def test_a_router_that_fails_is_stood_in_for(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_topic_search("tea"), "No idea.")
        graph = asleep(tmp_path, fake_roles(responder, router=FailingRole()), "茶", "雨")
        assert spoken(graph, CONFIG, "Well?") == "No idea."
        failures = last_receipt(tmp_path, graph, CONFIG).failures
        assert [(c.role, c.failure) for c in failures] == [("router", "RuntimeError: out of order")]

    @pytest.mark.slow
    def test_what_was_said_in_an_earlier_round_is_not_said_again(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_topic_search("a"), make_topic_search("b"), "Done.")
        reader = SteadyReader(quotes=1, summary="一场大雨的经过")
        roles = fake_roles(responder, reader=reader, router=NameRouter({"茶": 1.0}))
        graph = asleep(tmp_path, roles, "茶", "雨")
        tell(graph, CONFIG, "Well?")
        last = prompt_of(responder.requests[-1])
        assert last.count(reader.summary) == 1
        assert last.count(transcript_of(tmp_path, graph, CONFIG)[0].text) == 1


class TestReplyAlreadyReleased:
    TEXT = "This is a long beginning of a reply. " * 10

    @pytest.mark.slow
    def test_what_the_user_saw_stands(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_topic_search("tea", text=self.TEXT), "Now I know: tea.")
        roles = fake_roles(responder, router=NameRouter({"茶": 1.0}))
        graph = asleep(tmp_path, roles, "茶", "雨")
        assert spoken(graph, CONFIG, "Well?") == self.TEXT + "Now I know: tea."
        said = [r.message for r in transcript_of(tmp_path, graph, CONFIG)[-3:]]
        assert [get_text(m) for m in said] == ["Well?", self.TEXT, "Now I know: tea."]
        assert [getattr(m, "tool_calls", []) for m in said] == [[], [], []]
        receipt = last_receipt(tmp_path, graph, CONFIG)
        assert receipt.abandoned == 0
        assert receipt.activated == ("t1",)
        # The second prompt shows what was said so far, and no call without a result.
        second = responder.requests[-1].messages
        assert [m.type for m in second][-2:] == ["human", "ai"]
        assert get_text(second[-1]) == self.TEXT
        assert getattr(second[-1], "tool_calls", []) == []

    @pytest.mark.slow
    def test_a_call_in_content_blocks_is_taken_out_too(self, tmp_path: Path) -> None:
        rounds: list[str | dict[str, Any]] = [
            {"type": "text", "text": self.TEXT, "index": 0},
            {"type": "tool_use", "id": "c", "name": "activate_topic", "input": {}, "index": 1},
        ]
        call = {"name": "activate_topic", "args": '{"query": "tea"}', "id": "c", "index": 1}
        first = [
            AIMessageChunk(content=rounds[:1]),
            AIMessageChunk(content=rounds[1:], tool_call_chunks=[call]),
        ]
        responder = ScriptedResponder(first, "Now I know.")
        roles = fake_roles(responder, router=NameRouter({"茶": 1.0}))
        graph = asleep(tmp_path, roles, "茶", "雨")
        tell(graph, CONFIG, "Well?")
        for request in responder.requests[1:]:
            for message in request.messages:
                parts = message.content if isinstance(message.content, list) else []
                assert not any(isinstance(p, dict) and p.get("type") == "tool_use" for p in parts)


class TestAmnesia:
    @pytest.mark.slow
    @pytest.mark.parametrize("cue", ["You forgot the tea!", "你忘了吗？", "我之前说过的茶"])
    def test_a_cue_starts_a_search_before_the_reply(self, tmp_path: Path, cue: str) -> None:
        responder, router = ScriptedResponder("Of course."), NameRouter({"茶": 1.0})
        graph = asleep(tmp_path, fake_roles(responder, router=router), "茶", "雨")
        events = events_of(graph, CONFIG, cue)
        assert "remembering" in [e["type"] for e in events]
        assert [r.query for r in router.requests] == [cue]
        assert len(responder.requests) == 1
        receipt = last_receipt(tmp_path, graph, CONFIG)
        assert receipt.activated == ("t1",)
        roles = [c.role for c in receipt.calls]
        assert roles.index("router") < roles.index("reader") < roles.index("responder")

    @pytest.mark.slow
    def test_the_threshold_is_relaxed(self, tmp_path: Path) -> None:
        router = NameRouter({"茶": 0.5})
        responder = ScriptedResponder(make_topic_search("tea"), "No.")
        graph = asleep(tmp_path / "a", fake_roles(responder, router=router), "茶", "雨")
        tell(graph, CONFIG, "The tea?")
        assert get_session(graph, CONFIG).active == {}
        graph = asleep(tmp_path / "b", fake_roles(router=router), "茶", "雨")
        tell(graph, CONFIG, "You forgot the tea?")
        assert "t1" in last_receipt(tmp_path / "b", graph, CONFIG).activated
        responder = ScriptedResponder(make_topic_search("tea", forgotten=True), "No.")
        graph = asleep(tmp_path / "c", fake_roles(responder, router=router), "茶", "雨")
        tell(graph, CONFIG, "The tea?")
        assert "t1" in last_receipt(tmp_path / "c", graph, CONFIG).activated

    @pytest.mark.slow
    def test_an_ordinary_message_starts_none(self, tmp_path: Path) -> None:
        router = NameRouter({"茶": 1.0})
        graph = asleep(tmp_path, fake_roles(router=router), "茶", "雨")
        tell(graph, CONFIG, "Nice weather")
        assert router.requests == []

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("said", "forgotten"), [("You forgot the tea!", ["amnesia"]), ("Nice weather", [])]
    )
    def test_it_is_a_step_of_its_own(self, tmp_path: Path, said: str, forgotten: list[str]) -> None:
        router = NameRouter({"茶": 1.0})
        graph = asleep(tmp_path, fake_roles(router=router), "茶", "雨")
        updates = graph.stream({"messages": [HumanMessage(said)]}, CONFIG, stream_mode="updates")
        nodes = [node for update in updates for node in update]
        before = ["ingest", "estimate", "retrieve"]
        after = ["main_generate", "finalize"]
        readers = ["read_topic"] if forgotten else []
        assert nodes == [*before, *forgotten, *readers, "assemble", *after]

    def test_a_first_split_finds_nothing_to_search(self, tmp_path: Path) -> None:
        router, responder = NameRouter({}), ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder, router=router))
        tell(graph, CONFIG, "You forgot something", keep=4)
        assert router.requests == []
        assert last_receipt(tmp_path, graph, CONFIG).searches == ()
        assert len(responder.requests) == 1

    def test_before_there_are_topics_there_is_nothing_to_search(self, tmp_path: Path) -> None:
        router, responder = NameRouter({}), ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder, router=router))
        tell(graph, CONFIG, "You forgot something")
        assert router.requests == []
        assert len(responder.requests) == 1

    @pytest.mark.slow
    def test_further_cues_are_a_setting(self, tmp_path: Path) -> None:
        router = NameRouter({"茶": 1.0})
        roles = fake_roles(router=router)
        graph = asleep(tmp_path, roles, "茶", "雨", amnesia_cues=("te lo dije",))
        tell(graph, CONFIG, "¡Te lo dije!")
        assert len(router.requests) == 1

    @pytest.mark.slow
    def test_a_sleeping_topic_wakes_by_what_is_said(self, tmp_path: Path) -> None:
        """By its reader, which the index suggests: nobody asks a router."""
        router, reader = NameRouter({}), SteadyReader()
        roles = fake_roles(router=router, reader=reader)
        graph = open_after(past("茶", "雨"), tmp_path, roles, activation=ONE_AWAKE)
        tell(graph, CONFIG, "Hello", keep=0)
        (awake,) = get_session(graph, CONFIG).active
        other = {"t1": "雨", "t2": "茶"}[awake]
        text = next(r.text for r in transcript_of(tmp_path, graph, CONFIG) if other in r.text)
        reader.scores, reader.otherwise = {other: 0.95}, 0.1
        tell(graph, CONFIG, text.replace("第1次", ""))
        assert last_receipt(tmp_path, graph, CONFIG).activated
        assert router.requests == []
