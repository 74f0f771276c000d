"""One turn after another: cold start, split, fan-out, tools."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from sessions import (
    chatter,
    check_kept,
    kept,
    last_receipt,
    open_after,
    open_graph,
    past,
    prompt_of,
    record,
    tell,
    thread,
    transcript_of,
    windows_of,
)

from topicloom import Session, TurnOptions, get_session
from topicloom.context.token_count import EstimatingCounter
from topicloom.hosting import get_text
from topicloom.prompts.loader import load_prompt
from topicloom.testing import (
    Clock,
    ScriptedReply,
    ScriptedResponder,
    SteadyReader,
    TaggedSplitter,
    fake_roles,
    make_tool_call,
)

CONFIG = thread()


class TestColdStart:
    def test_it_is_an_ordinary_chat(self, tmp_path: Path) -> None:
        """One model call a turn, and no reader, until the first split."""
        responder, reader = ScriptedResponder(), SteadyReader()
        roles = fake_roles(responder, reader=reader)
        graph = open_graph(tmp_path, roles, instructions="Be kind.")
        said: list[BaseMessage] = []
        for text in ("Hello", "Who are you?", "I see"):
            said.append(HumanMessage(text))
            tell(graph, CONFIG, text)
            request = responder.requests[-1]
            system, *rest = request.messages
            assert system.content == f"Be kind.\n\n{load_prompt('days', 'en')}"
            dated = [*said]
            dated[0] = HumanMessage(f"-- 2026-03-02 (Monday) --\n{said[0].content}")
            assert [(m.type, m.content) for m in rest] == [(m.type, m.content) for m in dated]
            assert list(request.tools) == []
            said.append(AIMessage("All right, noted."))
            receipt = last_receipt(tmp_path, graph, CONFIG)
            assert [c.role for c in receipt.calls] == ["responder"]
        assert len(responder.requests) == 3
        assert reader.requests == []
        assert get_session(graph, CONFIG).topics == 0

    def test_without_instructions_there_is_the_conversation_and_what_its_days_are(
        self, tmp_path: Path
    ) -> None:
        responder = ScriptedResponder()
        tell(open_graph(tmp_path, fake_roles(responder)), CONFIG, "Hello")
        system, *shown = [m.content for m in responder.requests[0].messages]
        assert system == load_prompt("days", "en")
        assert shown == ["-- 2026-03-02 (Monday) --\nHello"]

    def test_a_history_may_come_with_the_first_message(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        graph.invoke({"messages": [("user", "a"), ("ai", "b"), ("user", "c")]}, CONFIG)
        assert [r.text for r in transcript_of(tmp_path, graph, CONFIG)] == [
            "a",
            "b",
            "c",
            "All right, noted.",
        ]
        assert len(responder.requests) == 1


class TestSplit:
    def test_whole_blocks_move_into_topics(self, tmp_path: Path) -> None:
        splitter = TaggedSplitter()
        graph = open_after(past("茶", "雨"), tmp_path, fake_roles(splitter=splitter))
        tell(graph, CONFIG, chatter("山", 1), keep=0)
        session = get_session(graph, CONFIG)
        store = kept(tmp_path, session)
        check_kept(store, session)
        topics = {t.name: t for t in store.topic_table(session)}
        assert set(topics) == {"茶", "雨"}
        assert topics["茶"].count == 8
        assert topics["茶"].brief
        assert topics["茶"].first_at
        assert topics["茶"].last_at
        assert set(session.active) == {"t1", "t2"}
        receipt = store.receipts(session, 1)[0]
        assert receipt.activated == ("t1", "t2")
        assert receipt.split == ("t1", "t2")
        assert [c.role for c in receipt.calls][:3] == ["splitter", "brief", "brief"]
        assert len(splitter.requests) == 1

    @pytest.mark.slow
    def test_messages_stay_in_view_whether_split_or_not(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder), window=2_600)
        record(graph, CONFIG, *past("茶", "雨", rounds=12))
        tell(graph, CONFIG, chatter("山", 1))
        session = get_session(graph, CONFIG)
        assert session.view < session.tail
        view = transcript_of(tmp_path, graph, CONFIG)[session.view - 1 : -1]
        shown = [get_text(m) for m in responder.requests[-1].messages[1:-1]]
        assert shown == [
            f"-- 2026-03-02（星期一）--\n{view[0].text}",
            *(r.text for r in view[1:-1]),
        ]

    @pytest.mark.slow
    def test_later_messages_join_the_topics_there_are(self, tmp_path: Path) -> None:
        graph = open_after(past("茶", "雨"), tmp_path)
        for n in range(1, 15):
            tell(graph, CONFIG, chatter("茶雨"[n % 2], 100 + n))
        session = get_session(graph, CONFIG)
        store = kept(tmp_path, session)
        check_kept(store, session)
        assert [t.name for t in store.topic_table(session)] == ["茶", "雨"]
        assert len([r for r in store.receipts(session) if r.split]) >= 2

    @pytest.mark.slow
    def test_of_many_topics_a_splitter_sees_some(self, tmp_path: Path) -> None:
        splitter = TaggedSplitter()
        awake = {"floor": 1, "usual": 2, "ceiling": 2}
        roles = fake_roles(splitter=splitter)
        graph = open_graph(tmp_path, roles, index_topics=4, activation=awake, embedder="hashing")
        tags = "茶雨山海书琴花鸟"
        for n in range(0, len(tags), 2):
            record(graph, CONFIG, *past(*tags[n : n + 2]))
            tell(graph, CONFIG, chatter(tags[n + 1], n), keep=0)
        record(graph, CONFIG, *past("茶", "雨"))
        tell(graph, CONFIG, chatter("雨", 1), keep=0)
        session = get_session(graph, CONFIG)
        check_kept(kept(tmp_path, session), session)
        assert all(len(r.topics) <= 4 for r in splitter.requests)
        known = [r for r in splitter.requests if r.topics]
        asked = next(r for r in known if {"茶", "雨"} <= {b.text[0] for b in r.rounds})
        active, near = asked.topics[:2], asked.topics[2:]
        assert {t.id for t in active} == asked.active
        assert {t.name for t in near} == {"茶", "雨"}

    def test_keeping_none_moves_everything(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_after(past("茶", rounds=2), tmp_path, fake_roles(responder))
        tell(graph, CONFIG, "Hello", keep=0)
        session = get_session(graph, CONFIG)
        check_kept(kept(tmp_path, session), session)
        assert (session.view, session.tail) == (5, 5)
        assert [m.type for m in responder.requests[-1].messages] == ["system", "human"]

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:left out of the prompt")
    def test_a_message_larger_than_the_window_is_kept_whole(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        huge = "茶：" + "很长的一段话，" * 2_000
        tell(graph, CONFIG, huge)
        for n in range(12):
            tell(graph, CONFIG, chatter("雨", n))
        session = get_session(graph, CONFIG)
        transcript = check_kept(kept(tmp_path, session), session)
        assert transcript[0].text == huge
        assert session.tail > 1
        assert all(len(prompt_of(r)) < len(huge) for r in responder.requests)


class TestFanOut:
    @pytest.mark.slow
    def test_every_active_topic_is_read(self, tmp_path: Path) -> None:
        responder, reader = ScriptedResponder(), SteadyReader(quotes=1, summary="摘要")
        graph = open_after(
            past("茶", "雨", "山", rounds=3), tmp_path, fake_roles(responder, reader=reader)
        )
        tell(graph, CONFIG, "Hello again", keep=4)
        assert sorted(w.topic.name for w in windows_of(reader)) == sorted("茶雨山")
        for window in windows_of(reader):
            assert {m.text[0] for m in window.messages} == {window.topic.name}
        for request in reader.requests:
            assert request.tail[-1].text == "Hello again"
            assert request.query == "Hello again"
        receipt = last_receipt(tmp_path, graph, CONFIG)
        assert set(receipt.scores) == {"t1", "t2", "t3"}
        assert [c.role for c in receipt.calls].count("reader") == len(reader.requests)
        # What still stands in view is not quoted.
        quoted = [i for note in receipt.quoted for i in note.quotes]
        view = get_session(graph, CONFIG).view
        assert quoted
        assert all(int(i[1:]) < view for i in quoted)
        prompt = prompt_of(responder.requests[-1])
        transcript = transcript_of(tmp_path, graph, CONFIG)
        for i in quoted:
            assert transcript[int(i[1:]) - 1].text in prompt

    @pytest.mark.slow
    def test_nothing_is_quoted_twice_until_the_next_split(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_after(
            past("茶", "雨", rounds=6), tmp_path, fake_roles(responder), window=3_000
        )
        tell(graph, CONFIG, "Hello", keep=0)
        tell(graph, CONFIG, "And now?", "And then?")
        session = get_session(graph, CONFIG)
        notes = kept(tmp_path, session).notes(session)
        quoted = [i for n in notes for t in n.topics for i in t.quotes]
        assert len(quoted) >= 4
        assert len(quoted) == len(set(quoted))
        prompt = prompt_of(responder.requests[-1])
        transcript = transcript_of(tmp_path, graph, CONFIG)
        assert all(prompt.count(transcript[int(i[1:]) - 1].text) == 1 for i in quoted)

    @pytest.mark.slow
    def test_the_spec_s_layout_shows_what_is_relevant_now(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_after(
            past("茶", rounds=6), tmp_path, fake_roles(responder), window=3_000, layout="spec"
        )
        tell(graph, CONFIG, "Hello", keep=0)
        tell(graph, CONFIG, "And now?", "And then?")
        for request in responder.requests[-2:]:
            system = get_text(request.messages[0])
            heading = system.index("## 茶 (topics/topic-t1.jsonl)\n")
            assert heading < system.index(chatter("茶", 1, characters=120))
            assert all("<memory>" not in get_text(m) for m in request.messages[1:])

    @pytest.mark.slow
    def test_topics_that_are_never_relevant_fall_asleep(self, tmp_path: Path) -> None:
        reader = SteadyReader(scores={"茶": 0.9}, otherwise=0.0)
        activation = {"floor": 1}
        graph = open_after(
            past("茶", "雨", rounds=5),
            tmp_path,
            fake_roles(reader=reader),
            activation=activation,
            window=4_000,
        )
        tell(graph, CONFIG, "Hello", keep=0)
        slept: list[str] = []
        for _ in range(6):
            tell(graph, CONFIG, "Fine")
            slept += last_receipt(tmp_path, graph, CONFIG).deactivated
        assert slept == ["t2"]
        assert set(get_session(graph, CONFIG).active) == {"t1"}
        asked = len(windows_of(reader))
        tell(graph, CONFIG, "Still there?")
        assert [w.topic.name for w in windows_of(reader)[asked:]] == ["茶"]


class TestTools:
    @staticmethod
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"Sunny in {city}."

    @staticmethod
    def broken(city: str) -> str:
        """A tool that does not work."""
        raise RuntimeError(f"no connection to {city}")

    def test_a_normal_tool_loop(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(
            make_tool_call("weather", {"city": "北京"}, text="Let me see."), "It is sunny.", "Bye."
        )
        graph = open_graph(tmp_path, fake_roles(responder), tools=[self.weather])
        messages = tell(graph, CONFIG, "How is the weather?")
        assert [m.type for m in messages] == ["human", "ai", "tool", "ai"]
        transcript = transcript_of(tmp_path, graph, CONFIG)
        assert [r.role for r in transcript] == ["user", "assistant", "tool", "assistant"]
        assert [type(r.message) for r in transcript] == [
            HumanMessage,
            AIMessage,
            ToolMessage,
            AIMessage,
        ]
        assert transcript[2].text == "Sunny in 北京."
        call = transcript[1].message
        assert isinstance(call, AIMessage)
        assert call.tool_calls[0]["args"] == {"city": "北京"}
        tell(graph, CONFIG, "Thanks, bye")
        sent = responder.requests[-1].messages
        assert [m.type for m in sent] == ["system", "human", "ai", "tool", "ai", "human"]
        assert [t.name for t in responder.requests[-1].tools] == ["weather"]

    @pytest.mark.slow
    def test_with_topics_both_kinds_of_tools_are_offered(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_tool_call("weather", {"city": "Rome"}), "Sunny.")
        graph = open_after(past("茶", "雨"), tmp_path, fake_roles(responder), tools=[self.weather])
        tell(graph, CONFIG, "How is the weather?", keep=2)
        offered = [t.name for t in responder.requests[0].tools]
        assert offered == ["weather", "activate_topic"]
        session = get_session(graph, CONFIG)
        check_kept(kept(tmp_path, session), session)
        assert [r.role for r in transcript_of(tmp_path, graph, CONFIG)[-3:]] == [
            "assistant",
            "tool",
            "assistant",
        ]

    @pytest.mark.slow
    def test_tool_calls_and_results_move_together(self, tmp_path: Path) -> None:
        script: list[ScriptedReply] = []
        for _ in range(12):
            script += [make_tool_call("weather", {"city": "Rome"}), "Sunny again."]
        graph = open_graph(
            tmp_path, fake_roles(ScriptedResponder(*script)), tools=[self.weather], window=2_400
        )
        for n in range(12):
            tell(graph, CONFIG, chatter("茶雨山"[n % 3], n, characters=120))
        session = get_session(graph, CONFIG)
        check_kept(kept(tmp_path, session), session)
        assert session.tail > 1
        assert session.count == 48

    def test_a_tool_that_fails_does_not_break_the_session(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(
            make_tool_call("broken", {"city": "Rome"}), "It seems to be down."
        )
        graph = open_graph(tmp_path, fake_roles(responder), tools=[self.broken])
        try:
            tell(graph, CONFIG, "How is the weather?")
        except RuntimeError:
            tell(graph, CONFIG, "Never mind")
        # Providers refuse a call without its result, in this prompt and in every later one.
        for request in responder.requests:
            called = [c["id"] for m in request.messages for c in getattr(m, "tool_calls", [])]
            answered = [m.tool_call_id for m in request.messages if isinstance(m, ToolMessage)]
            assert called == answered

    @pytest.mark.parametrize("stop", ["tools", "main_generate"])
    def test_a_message_sent_again_goes_on_where_its_tools_stopped(
        self, tmp_path: Path, stop: str
    ) -> None:
        responder = ScriptedResponder(make_tool_call("weather", {"city": "Rome"}), "Sunny.")
        graph = open_graph(tmp_path, fake_roles(responder), tools=[self.weather])
        asked = {"messages": [HumanMessage("How is the weather?", id="q")]}
        graph.invoke(asked, CONFIG, interrupt_after=[stop])
        messages = graph.invoke(asked, CONFIG)["messages"]
        assert [m.type for m in messages][-1] == "ai"
        assert messages[-1].content == "Sunny."
        transcript = transcript_of(tmp_path, graph, CONFIG)
        kinds = ["user", "assistant", "tool", "assistant"]
        assert [r.role for r in transcript] == [k for k in kinds if stop == "tools" or k != "tool"]
        assert responder.requests[-1].query == "How is the weather?"


class TestRecordOnly:
    @pytest.mark.slow
    def test_no_role_is_asked_where_a_turn_only_records(self, tmp_path: Path) -> None:
        responder, reader = ScriptedResponder(), SteadyReader()
        graph = open_graph(tmp_path, fake_roles(responder, reader=reader))
        record(graph, CONFIG, *past("茶", "雨", "山", rounds=6))
        record(graph, CONFIG, HumanMessage("A question that nobody answers"))
        assert responder.requests == []
        assert reader.requests == []
        session = get_session(graph, CONFIG)
        transcript = check_kept(kept(tmp_path, session), session)
        assert len(transcript) == 37
        assert session.topics > 0, "it splits all the same"
        assert session.turn == 2

    def test_what_was_recorded_is_known_to_the_next_turn(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        record(graph, CONFIG, HumanMessage("My cat is called Tom."))
        tell(graph, CONFIG, "What is my cat called?")
        assert "My cat is called Tom." in prompt_of(responder.requests[0])
        assert [r.role for r in transcript_of(tmp_path, graph, CONFIG)] == [
            "user",
            "user",
            "assistant",
        ]

    def test_a_reply_that_came_from_elsewhere_is_only_kept(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        graph.invoke({"messages": [HumanMessage("Hi"), AIMessage("Hello!")]}, CONFIG)
        assert responder.requests == []
        assert [r.text for r in transcript_of(tmp_path, graph, CONFIG)] == ["Hi", "Hello!"]

    def test_blocks_stay_whole_when_replies_come_late(self, tmp_path: Path) -> None:
        """A reply in a turn of its own belongs to the round of its question."""
        graph = open_graph(tmp_path)
        record(graph, CONFIG, HumanMessage("茶：第一"))
        options = TurnOptions(answer=False, keep_messages=0)
        graph.invoke({"messages": [AIMessage("好")]}, CONFIG, context=options)
        graph.invoke({"messages": [HumanMessage("雨：第二")]}, CONFIG, context=options)
        session = get_session(graph, CONFIG)
        check_kept(kept(tmp_path, session), session)


def heads_of(session: Session) -> Iterator[str | None]:
    yield from (session.transcript, session.roster, session.ledger, session.turns)


@pytest.mark.slow
def test_the_state_points_at_bodies_and_holds_none(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    record(graph, CONFIG, *past("茶", "雨", "山"))
    tell(graph, CONFIG, "Hello", "And now?")
    values = graph.get_state(CONFIG).values
    assert all(heads_of(Session.model_validate(values["session"])))
    rest = {k: v for k, v in values.items() if k != "messages"}
    assert "茶" not in str(rest)


class TestLanguage:
    @pytest.mark.slow
    def test_prompts_follow_the_conversation_from_split_to_split(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder))
        tell(graph, CONFIG, "Hello there, my friend")
        assert get_session(graph, CONFIG).language == "en"
        record(graph, CONFIG, *past("茶"))
        tell(graph, CONFIG, "好", keep=0)
        assert get_session(graph, CONFIG).language == "zh"
        assert load_prompt("responder", "zh") in prompt_of(responder.requests[-1])
        tell(graph, CONFIG, "And now?")
        assert load_prompt("responder", "zh") in prompt_of(responder.requests[-1])

    def test_a_setting_fixes_it(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_after(past("茶"), tmp_path, fake_roles(responder), language="en")
        tell(graph, CONFIG, "好", keep=0)
        assert load_prompt("responder", "en") in prompt_of(responder.requests[-1])


class TestTheDay:
    """The main model knows what day it is, and on which day each message was written."""

    def test_days_between_two_messages_can_be_counted(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_graph(tmp_path, fake_roles(responder), clock=Clock(timedelta(days=3)))
        tell(graph, CONFIG, "I planted the tulips today.", "How many days did it take?")
        said = [m.content for m in responder.requests[-1].messages if m.type == "human"]
        planted, asked = [r.day for r in transcript_of(tmp_path, graph, CONFIG) if r.role == "user"]
        assert said == [
            f"-- {date.fromisoformat(planted):%Y-%m-%d (%A)} --\nI planted the tulips today.",
            f"-- {date.fromisoformat(asked):%Y-%m-%d (%A)} --\nHow many days did it take?",
        ]

    @pytest.mark.slow
    def test_through_splits_the_lines_are_in_what_is_counted(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        clock = Clock(timedelta(hours=2))
        graph = open_graph(tmp_path, fake_roles(responder), clock=clock, layout="spec")
        splits = 0
        for number in range(24):
            tell(graph, CONFIG, chatter("茶雨"[number % 2], number))
            receipt = last_receipt(tmp_path, graph, CONFIG)
            splits += bool(receipt.split)
            shown = responder.requests[-1].messages
            counted = sum(map(EstimatingCounter("o200k").message, shown))
            assert sum(receipt.sections.values()) == pytest.approx(counted, abs=len(shown))
            assert sum("-- 2026-03-" in get_text(m) for m in shown if m.type == "human") >= 1
        assert splits
