"""A role that fails costs its own contribution, never the turn; the receipt says so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from sessions import (
    check_kept,
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
)
from slow_roles import SlowRole

from topicloom import (
    BRIEF,
    READER,
    SPLITTER,
    Assignment,
    Quote,
    Reading,
    ReadRequest,
    ReplyError,
    Roles,
    Route,
    get_session,
)
from topicloom.hosting import Graph
from topicloom.testing import (
    FailingRole,
    FixedRole,
    NameRouter,
    ScriptedReply,
    ScriptedResponder,
    SteadyReader,
    TaggedSplitter,
    fake_roles,
    make_tool_call,
    make_topic_search,
    read_tag,
)

CONFIG = thread()
FAILING: list[Any] = [FailingRole(), SlowRole(), FixedRole(None), FixedRole("what?")]


def asked(folder: Path, roles: Roles, text: str = "Hello", **settings: Any) -> Graph:
    """A session in which all that was said is split before a message is answered."""
    graph = open_after(past("茶", "雨"), folder, roles, **settings)
    tell(graph, CONFIG, text, keep=0)
    return graph


def failures(folder: Path, graph: Graph) -> list[str]:
    return [c.role for c in last_receipt(folder, graph, CONFIG).failures]


def check(folder: Path, graph: Graph) -> None:
    """The session is sound, and its last message is the reply."""
    session = get_session(graph, CONFIG)
    transcript = check_kept(kept(folder, session), session)
    assert transcript[-1].text == "All right, noted."


class TestReaders:
    @pytest.mark.slow
    @pytest.mark.parametrize("reader", FAILING[:3], ids=["raises", "is late", "says nothing"])
    def test_the_embedded_reader_stands_in(self, tmp_path: Path, reader: Any) -> None:
        graph = asked(tmp_path, fake_roles(reader=reader), "茶的事情")
        check(tmp_path, graph)
        receipt = last_receipt(tmp_path, graph, CONFIG)
        assert set(receipt.scores) == {"t1", "t2"}
        if not isinstance(reader, FixedRole):
            assert set(failures(tmp_path, graph)) == {"reader"}

    @pytest.mark.slow
    async def test_a_late_reader_on_the_event_loop(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path, fake_roles(reader=SlowRole()))
        record(graph, CONFIG, *past("茶", "雨", rounds=6))
        await graph.ainvoke({"messages": [HumanMessage("Hello")]}, CONFIG)
        check(tmp_path, graph)
        reasons = {c.failure for c in last_receipt(tmp_path, graph, CONFIG).failures}
        assert reasons == {"no answer within 0.05 s"}

    @pytest.mark.parametrize(
        "ids", [["m999"], ["m0"], ["m-1"], ["x"], [""], ["m²"], ["m19"], ["m1", "nonsense", "m3"]]
    )
    def test_ids_that_are_not_in_the_topic_are_dropped(
        self, tmp_path: Path, ids: list[str]
    ) -> None:
        def answer(request: ReadRequest) -> tuple[Reading, ...]:
            quotes = tuple(Quote(id=i, weight=0.9) for i in ids)
            topics = (w.topic.id for w in request.windows)
            return tuple(Reading(topic=t, score=0.9, quotes=quotes) for t in topics)

        graph = asked(tmp_path, fake_roles(reader=FixedRole(answer)))
        check(tmp_path, graph)
        receipt = last_receipt(tmp_path, graph, CONFIG)
        quoted = {(n.topic, i) for n in receipt.quoted for i in n.quotes}
        assert quoted <= {("t1", "m1"), ("t1", "m3")}

    @pytest.mark.parametrize("score", [7.0, -3.0, math.nan, math.inf])
    def test_odd_scores_do_no_harm(self, tmp_path: Path, score: float) -> None:
        def answer(request: ReadRequest) -> tuple[Reading, ...]:
            return tuple(Reading(topic=w.topic.id, score=score) for w in request.windows)

        graph = asked(tmp_path, fake_roles(reader=FixedRole(answer)))
        check(tmp_path, graph)
        scores = last_receipt(tmp_path, graph, CONFIG).scores
        assert all(0 <= s <= 1 for s in scores.values())
        tell(graph, CONFIG, "And now?")

    def test_a_reading_of_another_topic_is_that_of_its_own(self, tmp_path: Path) -> None:
        graph = asked(tmp_path, fake_roles(reader=FixedRole(Reading(topic="t77", score=0.9))))
        check(tmp_path, graph)
        assert set(last_receipt(tmp_path, graph, CONFIG).scores) == {"t1", "t2"}

    def test_what_is_no_reading_is_a_failure(self, tmp_path: Path) -> None:
        graph = asked(tmp_path, fake_roles(reader=FixedRole("what?")))
        check(tmp_path, graph)
        assert set(last_receipt(tmp_path, graph, CONFIG).scores) == {"t1", "t2"}


class TestSplitter:
    def test_what_is_left_out_is_asked_for_again_in_halves(self, tmp_path: Path) -> None:
        splitter = TaggedSplitter(covers=lambda round_: read_tag(round_.text) == "茶")
        graph = asked(tmp_path, fake_roles(splitter=splitter))
        check(tmp_path, graph)
        first, *again = splitter.requests
        assert len(first.rounds) == 8
        # Two calls that sort nothing are enough.
        assert [[read_tag(b.text) for b in r.rounds] for r in again] == [["雨"] * 2] * 2
        table = kept(tmp_path, get_session(graph, CONFIG)).topic_table(get_session(graph, CONFIG))
        assert next(iter(table)).name == "茶"
        assert sum(t.count for t in table) == 16
        calls = [c for c in last_receipt(tmp_path, graph, CONFIG).calls if c.role == "splitter"]
        assert any("8 messages that no answer sorted" in remark for remark in calls[-1].remarks)

    @pytest.mark.parametrize("most", [1, 2, 5])
    def test_a_splitter_of_short_answers_sorts_all_that_four_times_give(
        self, tmp_path: Path, most: int
    ) -> None:
        splitter = TaggedSplitter()
        splitter.covers = lambda b: b in list(splitter.requests[-1].rounds)[:most]
        graph = asked(tmp_path, fake_roles(splitter=splitter))
        check(tmp_path, graph)
        session = get_session(graph, CONFIG)
        table = kept(tmp_path, session).topic_table(session)
        assert {"茶", "雨"} == {t.name for t in table if not t.loose}
        assert len(splitter.requests) <= 7
        calls = [c for c in last_receipt(tmp_path, graph, CONFIG).calls if c.role == "splitter"]
        left = [remark for c in calls for remark in c.remarks if "no answer sorted" in remark]
        assert bool(left) == (most == 1)

    def test_later_answers_may_use_the_topics_of_earlier_ones(self, tmp_path: Path) -> None:
        splitter = TaggedSplitter()
        splitter.covers = lambda b: b in list(splitter.requests[-1].rounds)[:3]
        graph = asked(tmp_path, fake_roles(splitter=splitter))
        check(tmp_path, graph)
        assert [t.name for t in splitter.requests[1].topics] == ["茶"]
        session = get_session(graph, CONFIG)
        assert [t.name for t in kept(tmp_path, session).topic_table(session)] == ["茶", "雨"]

    @pytest.mark.parametrize("splitter", FAILING, ids=["raises", "is late", "none", "rubbish"])
    def test_one_that_fails_is_stood_in_for(self, tmp_path: Path, splitter: Any) -> None:
        graph = asked(tmp_path, fake_roles(splitter=splitter))
        check(tmp_path, graph)
        assert get_session(graph, CONFIG).topics > 0

    @pytest.mark.parametrize(
        "answer",
        [
            (),
            (Assignment(message="m999", name="x"),),
            (Assignment(message="m1", topic="t99"),),
            (Assignment(message="m1", name=""),) * 3,
            tuple(Assignment(message=f"m{n}", name="一" * 5_000) for n in range(1, 17)),
        ],
        ids=["nothing", "unknown message", "unknown topic", "no name", "a very long name"],
    )
    def test_an_answer_that_covers_nothing(
        self, tmp_path: Path, answer: Sequence[Assignment]
    ) -> None:
        graph = asked(tmp_path, fake_roles(splitter=FixedRole(answer)))
        check(tmp_path, graph)

    def test_if_the_stand_in_fails_too_nothing_is_lost(self, tmp_path: Path) -> None:
        broken = FailingRole()
        roles = (
            fake_roles()
            .replace(SPLITTER, broken, stand_in=broken)
            .replace(READER, broken, stand_in=broken)
            .replace(BRIEF, broken, stand_in=broken)
        )
        graph = asked(tmp_path, roles)
        check(tmp_path, graph)


class TestOthers:
    @pytest.mark.slow
    @pytest.mark.parametrize("brief", FAILING, ids=["raises", "is late", "none", "rubbish"])
    def test_briefs_are_written_by_the_stand_in(self, tmp_path: Path, brief: Any) -> None:
        graph = asked(tmp_path, fake_roles(brief=brief))
        check(tmp_path, graph)
        session = get_session(graph, CONFIG)
        topics = list(kept(tmp_path, session).topic_table(session))
        assert [t.name for t in topics] == ["茶", "雨"]
        assert all(t.brief for t in topics)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "router",
        [*FAILING, FixedRole(Route({"t99": 0.9})), FixedRole(Route({"t1": math.nan}))],
        ids=["raises", "is late", "none", "rubbish", "unknown topic", "no number"],
    )
    def test_a_search_goes_on_without_the_router(self, tmp_path: Path, router: Any) -> None:
        responder = ScriptedResponder(make_topic_search("tea"))
        graph = asked(tmp_path, fake_roles(responder, router=router))
        check(tmp_path, graph)
        tell(graph, CONFIG, "You forgot the tea!")
        check(tmp_path, graph)

    @pytest.mark.slow
    def test_turns_without_a_reply_leave_nothing_behind_that_grows(self, tmp_path: Path) -> None:
        down = ScriptedResponder("Hello.", otherwise=ConnectionError("refused"))
        graph = asked(tmp_path, fake_roles(down, rewriter=FixedRole("How hot is the tea?")))
        calls, shown = list[int](), list[int]()
        for number in range(8):
            with pytest.raises(ReplyError):
                tell(graph, CONFIG, f"How hot, {number}?")
            state = graph.get_state(CONFIG).values
            calls.append(len(state["calls"]))
            shown.append(len(state["messages"]))
        assert calls[1:] == [calls[1]] * 7
        assert shown[4:] == [shown[4]] * 4
        assert [m.text for m in transcript_of(tmp_path, graph, CONFIG)[-8:]] == [
            f"How hot, {number}?" for number in range(8)
        ]

    @pytest.mark.slow
    @pytest.mark.parametrize("rewriter", FAILING, ids=["raises", "is late", "none", "rubbish"])
    def test_the_message_stands_as_it_was_said(self, tmp_path: Path, rewriter: Any) -> None:
        reader = SteadyReader()
        graph = asked(tmp_path, fake_roles(reader=reader, rewriter=rewriter))
        tell(graph, CONFIG, "Hello")
        check(tmp_path, graph)
        if not isinstance(rewriter, FixedRole):
            assert {r.query for r in reader.requests} == {"Hello"}
            assert failures(tmp_path, graph) == ["rewriter"]

    def test_a_rewritten_message_is_what_is_looked_for(self, tmp_path: Path) -> None:
        reader, responder = SteadyReader(), ScriptedResponder()
        rewriter = FixedRole("How hot should the tea be?")
        roles = fake_roles(responder, reader=reader, rewriter=rewriter)
        graph = asked(tmp_path, roles)
        assert {r.query for r in reader.requests} == {"Hello"}, "nothing to look for so far"
        reader.requests.clear()
        tell(graph, CONFIG, "How hot should it be?")
        assert {r.query for r in reader.requests} == {"How hot should the tea be?"}
        assert transcript_of(tmp_path, graph, CONFIG)[-2].text == "How hot should it be?"
        assert responder.requests[-1].messages[-1].type == "human"
        assert "How hot should it be?" in prompt_of(responder.requests[-1])

    @pytest.mark.slow
    def test_everything_fails_at_once(self, tmp_path: Path) -> None:
        broken = FailingRole()
        roles = fake_roles(
            reader=broken, splitter=broken, router=broken, brief=broken, rewriter=broken
        )
        graph = asked(tmp_path, roles, "You forgot something")
        check(tmp_path, graph)
        assert set(failures(tmp_path, graph)) == {"splitter", "brief", "reader", "router"}
        tell(graph, CONFIG, "You forgot something")
        check(tmp_path, graph)
        assert set(failures(tmp_path, graph)) == {"rewriter", "reader", "router"}


class TestReply:
    def test_a_turn_that_fails_loses_nothing(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(RuntimeError("no"), RuntimeError("still no"))
        graph = open_graph(tmp_path, fake_roles(responder))
        with pytest.raises(ReplyError, match="still no"):
            tell(graph, CONFIG, "Are you there?")
        assert len(responder.requests) == 2
        tell(graph, CONFIG, "Hello?")
        said = [r.text for r in transcript_of(tmp_path, graph, CONFIG)]
        assert said == ["Are you there?", "Hello?", "All right, noted."]
        assert "Are you there?" in prompt_of(responder.requests[-1])
        check(tmp_path, graph)

    def test_the_error_says_what_to_do(self, tmp_path: Path) -> None:
        graph = open_graph(
            tmp_path, fake_roles(ScriptedResponder(ValueError("bad key"))), reply_attempts=1
        )
        with pytest.raises(ReplyError) as error:
            tell(graph, CONFIG, "Hello")
        assert "scripted" in str(error.value)
        assert "bad key" in str(error.value)
        assert "kept" in str(error.value)

    @pytest.mark.slow
    def test_the_turn_may_be_run_again(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(RuntimeError("no"))
        graph = open_after(past("茶", "雨"), tmp_path, fake_roles(responder), reply_attempts=1)
        with pytest.raises(ReplyError):
            tell(graph, CONFIG, "Hello", keep=0)
        graph.invoke(None, CONFIG)
        check(tmp_path, graph)
        assert [r.text for r in transcript_of(tmp_path, graph, CONFIG)[-2:]] == [
            "Hello",
            "All right, noted.",
        ]

    def test_the_message_may_be_sent_again(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(RuntimeError("no"))
        graph = open_graph(tmp_path, fake_roles(responder), reply_attempts=1)
        said = {"messages": [HumanMessage("Hello", id="a")]}
        with pytest.raises(ReplyError):
            graph.invoke(said, CONFIG)
        graph.invoke(said, CONFIG)
        check(tmp_path, graph)
        assert [r.text for r in transcript_of(tmp_path, graph, CONFIG)] == [
            "Hello",
            "All right, noted.",
        ]

    def test_a_turn_that_fails_after_a_tool_ran_goes_on_there(self, tmp_path: Path) -> None:
        ran: list[str] = []

        def weather(city: str) -> str:
            """The weather in a city."""
            ran.append(city)
            return "Sunny."

        responder = ScriptedResponder(
            make_tool_call("weather", {"city": "Rome"}), RuntimeError("no")
        )
        graph = open_graph(tmp_path, fake_roles(responder), tools=[weather], reply_attempts=1)
        with pytest.raises(ReplyError):
            tell(graph, CONFIG, "Hello")
        graph.invoke(None, CONFIG)
        check(tmp_path, graph)
        assert ran == ["Rome"]
        roles = [r.role for r in transcript_of(tmp_path, graph, CONFIG)]
        assert roles == ["user", "assistant", "tool", "assistant"]

    def test_a_turn_that_failed_after_a_tool_ran_is_not_lost(self, tmp_path: Path) -> None:
        def weather(city: str) -> str:
            """The weather in a city."""
            return "Sunny."

        responder = ScriptedResponder(
            make_tool_call("weather", {"city": "Rome"}), RuntimeError("no")
        )
        graph = open_graph(tmp_path, fake_roles(responder), tools=[weather], reply_attempts=1)
        with pytest.raises(ReplyError):
            tell(graph, CONFIG, "Hello")
        tell(graph, CONFIG, "Well?")
        check(tmp_path, graph)
        roles = [r.role for r in transcript_of(tmp_path, graph, CONFIG)]
        assert roles == ["user", "assistant", "tool", "user", "assistant"]
        kinds = [m.type for m in responder.requests[-1].messages]
        assert kinds == ["system", "human", "ai", "tool", "human"]

    @pytest.mark.slow
    def test_a_failed_turn_in_which_much_was_split(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(RuntimeError("no"))
        graph = open_after(past("茶", "雨"), tmp_path, fake_roles(responder), reply_attempts=1)
        with pytest.raises(ReplyError):
            tell(graph, CONFIG, "Hello", keep=0)
        for n in range(5):
            tell(graph, CONFIG, f"茶：{n}")
        check(tmp_path, graph)
        session = get_session(graph, CONFIG)
        assert [t.count for t in kept(tmp_path, session).topic_table(session)][:2] == [8, 8]

    async def test_the_same_on_the_event_loop(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(RuntimeError("no"))
        graph = open_graph(tmp_path, fake_roles(responder), reply_attempts=1)
        with pytest.raises(ReplyError):
            await graph.ainvoke({"messages": [HumanMessage("Hi")]}, CONFIG)
        await graph.ainvoke({"messages": [HumanMessage("Hello?")]}, CONFIG)
        check(tmp_path, graph)

    def test_with_durability_exit_too(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(RuntimeError("no"))
        graph = open_graph(tmp_path, fake_roles(responder), reply_attempts=1)
        with pytest.raises(ReplyError):
            graph.invoke({"messages": [HumanMessage("Hi")]}, CONFIG, durability="exit")
        graph.invoke({"messages": [HumanMessage("Hello?")]}, CONFIG, durability="exit")
        check(tmp_path, graph)
        assert [r.text for r in transcript_of(tmp_path, graph, CONFIG)][:2] == ["Hi", "Hello?"]

    def test_a_reply_that_breaks_off_is_begun_again(self, tmp_path: Path) -> None:
        broken: ScriptedReply = [AIMessageChunk(content="Well, I"), ConnectionError("gone")]
        responder = ScriptedResponder(broken)
        graph = open_graph(tmp_path, fake_roles(responder))
        events = events_of(graph, CONFIG, "Hello")
        assert "reply_restarted" in [e["type"] for e in events]
        check(tmp_path, graph)
        assert len(transcript_of(tmp_path, graph, CONFIG)) == 2

    @pytest.mark.parametrize(
        "empty",
        [
            *("", " \n ", [AIMessageChunk(content="")], []),
            [AIMessageChunk(content=[{"type": "thinking", "thinking": "Hm."}])],
        ],
    )
    def test_an_empty_reply_is_no_reply(self, tmp_path: Path, empty: ScriptedReply) -> None:
        graph = open_graph(tmp_path, fake_roles(ScriptedResponder(empty, empty)))
        with pytest.raises(ReplyError, match="kept"):
            tell(graph, CONFIG, "Hello")
        tell(graph, CONFIG, "Hello?")
        check(tmp_path, graph)

    @pytest.mark.slow
    def test_after_a_failed_search_round_the_next_turn_starts_afresh(self, tmp_path: Path) -> None:
        script: list[ScriptedReply] = [make_topic_search("tea"), RuntimeError("no")]
        responder = ScriptedResponder(*script)
        roles = fake_roles(responder, router=NameRouter({"茶": 1.0}))
        graph = open_after(past("茶", "雨"), tmp_path, roles, reply_attempts=1)
        with pytest.raises(ReplyError):
            tell(graph, CONFIG, "Well?", keep=0)
        assert spoken(graph, CONFIG, "Hello?") == "All right, noted."
        receipt = last_receipt(tmp_path, graph, CONFIG)
        assert receipt.abandoned == 0
        assert [c.role for c in receipt.calls].count("responder") == 1
        check(tmp_path, graph)

    @pytest.mark.slow
    def test_a_call_that_cannot_be_read_is_not_kept(self, tmp_path: Path) -> None:
        """A provider is sent such a call back as a call, and wants its result."""
        call = {"name": "activate_topic", "args": '{"query": ', "id": "c", "index": 0}
        said: ScriptedReply = [
            AIMessageChunk(content="Hm."),
            AIMessageChunk(content="", tool_call_chunks=[call]),
        ]
        responder = ScriptedResponder(said)
        graph = asked(tmp_path, fake_roles(responder))
        tell(graph, CONFIG, "And now?")
        for message in responder.requests[-1].messages:
            if isinstance(message, AIMessage):
                assert message.invalid_tool_calls == []
