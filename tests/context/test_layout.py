"""The main prompt: it grows at its end, in either order of its parts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar

import pytest
from examples import few
from hypothesis import given, strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    ToolMessage,
)
from langchain_core.messages.tool import ToolCall
from sessions import chatter, last_receipt, open_graph, tell, thread
from tables import each_row

from topicloom.context.layout import Layout, MainPrompt
from topicloom.context.token_count import EstimatingCounter
from topicloom.context.tokens import CachedTokenCounter
from topicloom.state.recall import LayoutName, Note, TopicNote
from topicloom.state.stored_message import StoredMessage, to_stored_message
from topicloom.testing import ScriptedResponder, fake_roles

COUNTER = CachedTokenCounter(EstimatingCounter("o200k"))
DAYS = [f"2026-03-{day:02d}T09:00:00+08:00" for day in range(1, 29)]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
CALL = ToolCall(name="look", args={"at": "it"}, id="c", type="tool_call")


values: st.SearchStrategy[Any] = st.recursive(
    st.integers() | st.text("abc 茶\n", max_size=9) | st.sampled_from(["long " * 900, "长" * 700]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab"), inner, max_size=3),
    max_leaves=12,
)
blocks = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, st.sampled_from(["", "So.", "long " * 900])),
    st.builds(lambda v: {"type": "web_search_tool_result", "content": v}, values),
    st.builds(lambda v: {"type": "reasoning", "summary": v, "encrypted_content": "x"}, values),
    st.builds(
        lambda n: {"type": "thinking", "thinking": "hm " * n, "signature": "s"},
        st.integers(0, 2_000),
    ),
)
calls = st.builds(
    lambda args, n: ToolCall(name="look", args=args, id=f"c{n}", type="tool_call"),
    st.dictionaries(st.text("ab", min_size=1), values, max_size=3),
    st.integers(0, 99),
)
any_content = st.sampled_from(["", "So.", "long " * 900, "长" * 900]) | st.lists(blocks, max_size=4)
any_replies = st.builds(
    lambda content, called: AIMessage(content, tool_calls=called),
    any_content,
    st.lists(calls, max_size=2, unique_by=lambda c: c["id"]),
)
any_messages: st.SearchStrategy[BaseMessage] = st.one_of(
    any_content.map(HumanMessage),
    any_content.map(lambda content: ToolMessage(content, tool_call_id="c")),
    any_replies,
)


def layout(order: LayoutName = "ledger", cap: int = 400) -> Layout:
    return Layout(COUNTER, cap=cap, order=order)


def messages_of(
    messages: Sequence[BaseMessage], start: int = 1, time: str = ""
) -> list[StoredMessage]:
    """Messages of no known time, unless one is given."""
    return [to_stored_message(m, seq=n, time=time) for n, m in enumerate(messages, start=start)]


def chat(count: int) -> list[StoredMessage]:
    """Questions with odd numbers, answers with even ones."""
    return messages_of(
        [
            HumanMessage(f"question {n}") if n % 2 else AIMessage(f"answer {n}")
            for n in range(1, count + 1)
        ]
    )


def lay_out(
    arranged: Layout,
    stored: Sequence[StoredMessage],
    notes: Sequence[Note],
    view: int = 1,
    headings: Mapping[str, str] | None = None,
) -> MainPrompt:
    said = stored[view - 1 :]
    return arranged.build_prompt(
        "Be kind.", said, notes, lambda n: stored[n - 1], "en", headings=headings
    )


def note(after: int, *topics: TopicNote) -> Note:
    return Note(after=after, topics=topics)


def recalled(topic: str, *quotes: str, score: float = 0.5, summary: str = "") -> TopicNote:
    return TopicNote(
        topic=topic, name=f"Name of {topic}", score=score, quotes=quotes, summary=summary
    )


def sent(messages: Sequence[BaseMessage]) -> list[tuple[object, ...]]:
    """What a provider is sent."""
    return [
        (
            m.type,
            m.content,
            m.name,
            getattr(m, "tool_calls", None),
            getattr(m, "tool_call_id", None),
        )
        for m in messages
    ]


class TestLedger:
    def test_a_note_stands_behind_the_message_that_called_for_it(self) -> None:
        stored = chat(9)
        notes = [note(5, recalled("t1", "m1")), note(9, recalled("t2", "m2", summary="All well."))]
        prompt = lay_out(layout(), stored, notes, view=3)
        texts = [str(m.content) for m in prompt.messages]
        assert texts[0] == "Be kind."
        assert [t.partition("\n")[0] for t in texts[1:]] == [r.text for r in stored[2:]]
        assert texts[3].startswith("question 5\n\n<memory>\n")
        assert "[m1] user: question 1" in texts[3]
        assert texts[-1].endswith("</memory>")
        assert "[m2] assistant: answer 2" in texts[-1]
        assert "All well." in texts[-1]
        assert all("<memory>" not in texts[i] for i in (0, 1, 2, 4, 5, 6))

    def test_two_notes_of_one_turn_stand_in_their_order(self) -> None:
        notes = [note(9, recalled("t1", "m1")), note(9, recalled("t2", "m2"))]
        last = str(lay_out(layout(), chat(9), notes, view=5).messages[-1].content)
        assert 0 < last.index("[m1]") < last.index("</memory>\n<memory>") < last.index("[m2]")

    def test_quotes_of_all_topics_stand_in_one_list_by_time(self) -> None:
        days = [DAYS[0], DAYS[0], DAYS[1], DAYS[1]]
        stored = [
            message
            for n, time in enumerate(days, start=1)
            for message in messages_of([HumanMessage(f"said {n}")], n, time)
        ] + messages_of([HumanMessage("And now?")], 5, DAYS[9])
        topics = recalled("t2", "m2", "m4", summary="It was so."), recalled("t1", "m1", "m3")
        last = str(lay_out(layout(), stored, [note(5, *topics)], view=5).messages[-1].content)
        assert last.partition("<memory>\n")[2].splitlines() == [
            "1 March 2026:",
            "[m1] user: said 1",
            "[m2] user: said 2",
            "2 March 2026:",
            "[m3] user: said 3",
            "[m4] user: said 4",
            "In short, Name of t2: It was so.",
            "</memory>",
        ]

    def test_without_instructions_there_is_no_system_message(self) -> None:
        stored = chat(1)
        prompt = layout().build_prompt("", stored, [], lambda n: stored[n - 1], "en")
        assert sent(prompt.messages) == sent([HumanMessage("question 1")])

    def test_a_note_goes_into_content_blocks_as_a_block(self) -> None:
        stored = messages_of([HumanMessage("Old"), HumanMessage([IMAGE])])
        prompt = lay_out(layout(), stored, [note(2, recalled("t1", "m1"))], view=2)
        content = prompt.messages[-1].content
        assert isinstance(content, list)
        assert content[0] == IMAGE
        assert isinstance(content[1], dict)
        assert "[m1] user: Old" in content[1]["text"]

    def test_the_conversation_itself_is_not_touched(self) -> None:
        stored = chat(3)
        lay_out(layout(), stored, [note(3, recalled("t1", "m1"))])
        assert [r.message.content for r in stored] == [r.text for r in stored]

    def test_sections_count_what_is_there(self) -> None:
        stored = chat(5)
        prompt = lay_out(layout(), stored, [note(5, recalled("t1", "m1"))], view=3)
        total = sum(map(COUNTER.message, prompt.messages))
        assert sum(prompt.sections.values()) == pytest.approx(total, abs=10)
        assert set(prompt.sections) == {"system", "notes", "tail"}

    def test_what_is_shown_and_where_it_came_from(self) -> None:
        stored = chat(6)
        partial = recalled("t2", "m2").model_copy(update={"partial": ("m2",)})
        prompt = lay_out(layout(), stored, [note(5, recalled("t1", "m1"), partial)], view=5)
        shown = "\n".join(str(m.content) for m in prompt.messages)
        assert [r.id for r in stored if r.text in shown] == ["m1", "m2", "m5", "m6"]
        assert [r.id for r in prompt.sources] == ["m1", "m2"]

    def test_the_tool_loop_comes_last(self) -> None:
        stored = chat(1)
        loop = [AIMessage("", tool_calls=[CALL]), ToolMessage("a fox", tool_call_id="c")]
        prompt = layout().build_prompt(
            "", stored, [note(1, recalled("t1"))], lambda n: stored[n - 1], "en", loop=loop
        )
        assert sent(prompt.messages[1:]) == sent(loop)


class TestToolCalls:
    """Providers refuse a call without a result, so one that was cut off is given one."""

    def test_a_call_that_was_cut_off_has_a_result_in_the_prompt(self) -> None:
        calls = [CALL, ToolCall(name="listen", args={}, id="d", type="tool_call")]
        stored = messages_of(
            [
                HumanMessage("Go"),
                AIMessage("", tool_calls=calls),
                ToolMessage("a fox", tool_call_id="c"),
                HumanMessage("And?"),
            ]
        )
        sent_messages = lay_out(layout(), stored, []).messages[1:]
        results = {m.tool_call_id for m in sent_messages if isinstance(m, ToolMessage)}
        assert results == {"c", "d"}
        assert [m.type for m in sent_messages] == ["human", "ai", "tool", "tool", "human"]

    def test_a_later_call_of_the_same_id_does_not_answer_it(self) -> None:
        """Some providers number the calls of each reply from 0."""
        call, result = AIMessage("", tool_calls=[CALL]), ToolMessage("fox", tool_call_id="c")
        stored = messages_of([HumanMessage("Go"), call, HumanMessage("Again"), call, result])
        kinds = [m.type for m in lay_out(layout(), stored, []).messages[1:]]
        assert kinds == ["human", "ai", "tool", "human", "ai", "tool"]

    def test_a_result_that_nothing_called_for_is_shown_as_words(self) -> None:
        call, result = AIMessage("", tool_calls=[CALL]), ToolMessage("fox", tool_call_id="c")
        stray = ToolMessage([{"type": "text", "text": "an owl"}], tool_call_id="z")
        stored = messages_of([HumanMessage("Go"), stray, call, result, result])
        shown = lay_out(layout(), stored, []).messages[1:]
        assert [m.type for m in shown] == ["human", "human", "ai", "tool", "human"]
        assert shown[1].text == "an owl"

    def test_it_has_its_image_and_is_never_empty(self) -> None:
        """Providers refuse a user's message that says nothing."""
        results = [ToolMessage([IMAGE], tool_call_id="y"), ToolMessage("", tool_call_id="z")]
        shown = lay_out(layout(), messages_of([HumanMessage("Go"), *results]), []).messages[2:]
        assert [m.content for m in shown] == [[IMAGE], "(cut off: there is no result)"]

    def test_nothing_is_added_to_calls_that_were_answered(self) -> None:
        call, result = AIMessage("", tool_calls=[CALL]), ToolMessage("fox", tool_call_id="c")
        stored = messages_of([HumanMessage("Go"), call, result, AIMessage("A fox.")])
        assert len(lay_out(layout(), stored, []).messages) == 5


class TestSpecOrder:
    def test_system_then_quotes_then_messages(self) -> None:
        notes = [note(9, recalled("t1", "m1", score=0.9), recalled("t2", "m2", score=0.4))]
        prompt = lay_out(layout("spec"), chat(9), notes, view=5)
        head, *rest = [str(m.content) for m in prompt.messages]
        assert head.startswith("Be kind.\n\n<memory>")
        assert head.index("[m1]") < head.index("[m2]") < head.index("</memory>")
        assert rest == [r.text for r in chat(9)[4:]]

    def test_topics_stand_by_score_each_with_its_heading(self) -> None:
        """Section 5 of the design paper: name, brief and file, the originals, the summary."""
        notes = [note(9, recalled("t1", "m2", score=0.9), recalled("t2", "m1", score=0.4))]
        headings = {"t1": "## Tea (topics/topic-t1.jsonl)\nLeaves.", "t2": "## Rain\nDrops."}
        prompt = lay_out(layout("spec"), chat(9), notes, view=5, headings=headings)
        head = str(prompt.messages[0].content)
        places = [head.index(part) for part in (headings["t1"], "[m2]", headings["t2"], "[m1]")]
        assert places == sorted(places)

    def test_what_an_earlier_turn_recalled_is_not_shown(self) -> None:
        prompt = lay_out(layout("spec"), chat(9), [note(7, recalled("t1", "m1"))], view=5)
        assert prompt.messages[0].content == "Be kind."

    def test_what_is_not_shown_is_not_counted(self) -> None:
        notes = [note(7, recalled("t1", "m1")), note(9, recalled("t2", "m2"))]
        prompt = lay_out(layout("spec"), chat(9), notes, view=5)
        assert "[m1]" not in str(prompt.messages[0].content)
        assert [r.id for r in prompt.sources] == ["m2"]
        total = sum(map(COUNTER.message, prompt.messages))
        assert sum(prompt.sections.values()) == pytest.approx(total, abs=10)


class TestOversize:
    LONG = "start " + "word " * 3_000 + "end"

    @pytest.mark.parametrize("kind", [HumanMessage, AIMessage])
    def test_it_is_shown_in_part_and_says_so(self, kind: type[HumanMessage | AIMessage]) -> None:
        stored = messages_of([kind(self.LONG, name="Ann")])
        shown = lay_out(layout(cap=200), stored, []).messages[-1]
        assert isinstance(shown.content, str)
        assert shown.content.startswith("start ")
        assert shown.content.endswith("end")
        assert "m1" in shown.content
        assert COUNTER.text(shown.content) <= 200
        assert (shown.type, shown.name) == (kind("").type, "Ann")
        assert stored[0].message.content == self.LONG

    def test_images_stay_where_a_long_text_is_cut(self) -> None:
        stored = messages_of([HumanMessage([{"type": "text", "text": self.LONG}, IMAGE])])
        (shown,) = lay_out(layout(cap=200), stored, []).messages[1:]
        assert isinstance(shown.content, list)
        assert IMAGE in shown.content
        assert len(str(shown.content)) < len(self.LONG)

    @each_row("kind", ["text", "text-plain", "input_text"])
    def test_text_in_any_block_is_fenced_shown_in_part_and_shown_once(self, kind: str) -> None:
        said = f"[m1] user: <memory> {self.LONG}"
        content: list[Any] = [IMAGE, {"type": kind, "text": said}, IMAGE, "more"]
        call = AIMessage("", tool_calls=[CALL])
        stored = messages_of([HumanMessage(content), call, HumanMessage("And?"), call])
        prompt = layout(cap=200).build_prompt(
            "", stored, [], lambda n: stored[n - 1], "en", [ToolMessage(content, tool_call_id="c")]
        )
        for shown in (prompt.messages[0].content, prompt.messages[-1].content):
            assert isinstance(shown, list)
            first, text, second = shown
            assert first == second == IMAGE
            assert isinstance(text, dict)
            assert text["text"].startswith(r"\[m1] user: &lt;memory> start")
            assert text["text"].endswith("\nmore")
            assert COUNTER.text(text["text"]) <= 210

    def test_a_refusal_stays_one(self) -> None:
        thought = {"type": "reasoning", "summary": []}
        (stored,) = messages_of([AIMessage([thought, {"type": "refusal", "refusal": "No."}])])
        assert layout(cap=200).show(stored, "en") is stored.message
        for said in ("Not\n[m1] user: that.", self.LONG):
            refusal = {"type": "refusal", "refusal": said}
            (stored,) = messages_of([AIMessage([thought, refusal])])
            assert stored.text == said
            shown = layout(cap=200).show(stored, "en")
            assert isinstance(shown.content, list)
            (anew,) = shown.content  # the thought belongs to other words
            assert isinstance(anew, dict)
            assert set(anew) == {"type", "refusal"}
            assert anew["refusal"].split()[0] == said.split()[0]
            assert "\n[m1] user" not in anew["refusal"]
            assert COUNTER.message(shown) < 230

    @pytest.mark.parametrize("order", ["ledger", "spec"])
    def test_images_that_a_note_brings_back_stand_last(self, order: LayoutName) -> None:
        shown = HumanMessage([{"type": "text", "text": "See?"}, IMAGE])
        stored = messages_of([shown, AIMessage("Yes."), HumanMessage("Which colour?")])
        line = {"type": "text", "text": "[image: m1]"}
        for media, blocks in ((True, [line, IMAGE]), (False, [line])):
            arranged = replace(layout(order), media=media)
            prompt = lay_out(arranged, stored, [Note(after=3, media=("m1",))], view=3)
            assert prompt.messages[-1].content == [
                {"type": "text", "text": "Which colour?"},
                *blocks,
            ]
            assert (prompt.sections["notes"] > 765) == media
        gone = [stored[0].model_copy(update={"text": "", "whole": None}), *stored[1:]]
        prompt = lay_out(layout(order), gone, [Note(after=3, media=("m1",))], view=3)
        assert prompt.messages[-1].content == "Which colour?"

    def test_tool_calls_stay(self) -> None:
        stored = messages_of([HumanMessage("Go"), AIMessage(self.LONG, tool_calls=[CALL])])
        shown = lay_out(layout(cap=200), stored, []).messages[2]
        assert isinstance(shown, AIMessage)
        assert shown.tool_calls == [CALL]
        assert len(str(shown.content)) < len(self.LONG)

    def test_a_large_tool_result_is_shown_in_part_at_once(self) -> None:
        stored = chat(1)
        loop = [AIMessage("", tool_calls=[CALL]), ToolMessage(self.LONG, tool_call_id="c")]
        arranged = layout(cap=200)
        prompt = arranged.build_prompt("", stored, [], lambda n: stored[n - 1], "en", loop=loop)
        assert COUNTER.message(prompt.messages[-1]) < 300

    def test_it_is_not_whole(self) -> None:
        stored = messages_of([HumanMessage(self.LONG), HumanMessage("short")])
        shown = [m.content for m in lay_out(layout(cap=200), stored, []).messages]
        assert self.LONG not in shown
        assert "short" in shown

    def test_it_counts_as_what_is_shown(self) -> None:
        stored, shown = messages_of([HumanMessage(self.LONG), HumanMessage([self.LONG, IMAGE])])
        assert 150 < layout(cap=200).count_tokens(stored, "en") <= 204
        assert layout(cap=200).count_tokens(shown, "en") > 150 + 765, "media are sent whole"


class TestRest:
    """What is no text of a message: whole up to the cap, as text is, then in part or not at all."""

    LONG = TestOversize.LONG
    THOUGHT: ClassVar = {"type": "thinking", "thinking": LONG, "signature": "s"}
    FOUND: ClassVar = {"type": "web_search_tool_result", "content": [{"encrypted_content": LONG}]}

    def show(self, message: BaseMessage, cap: int = 200) -> BaseMessage:
        (stored,) = messages_of([message])
        shown = layout(cap=cap).show(stored, "en")
        assert layout(cap=cap).count_tokens(stored, "en") == COUNTER.message(shown)
        assert stored.message.content == message.content
        return shown

    def test_arguments_of_calls_are_shown_in_part(self) -> None:
        args = {"path": "a", "parts": [{"text": self.LONG, "n": 1}, self.LONG]}
        invalid = InvalidToolCall(
            name="look", args=self.LONG, id="d", error=None, type="invalid_tool_call"
        )
        shown = self.show(
            AIMessage(
                "So.", tool_calls=[CALL, {**CALL, "args": args}], invalid_tool_calls=[invalid]
            ),
            cap=400,
        )
        assert isinstance(shown, AIMessage)
        assert shown.content == "So."
        first, second = shown.tool_calls
        assert first == CALL
        assert second["args"]["path"] == "a"
        assert second["args"]["parts"][0]["n"] == 1
        assert "characters of m1 left out here" in second["args"]["parts"][1]
        assert "characters of m1 left out here" in (shown.invalid_tool_calls[0]["args"] or "")
        assert COUNTER.message(shown) < 440

    def test_arguments_without_long_texts_are_shown_as_the_beginning_of_their_json(self) -> None:
        call = ToolCall(name="look", args={"all": list(range(5_000))}, id="c", type="tool_call")
        shown = self.show(AIMessage("", tool_calls=[call]))
        assert isinstance(shown, AIMessage)
        assert shown.tool_calls[0]["args"]["arguments"].startswith('{"all": [0, 1,')
        assert COUNTER.message(shown) < 240

    def test_thoughts_are_whole_or_left_out(self) -> None:
        small = AIMessage([{**self.THOUGHT, "thinking": "So."}, {"type": "text", "text": "Done."}])
        assert self.show(small).content == small.content
        large = AIMessage([self.THOUGHT, {"type": "text", "text": "Done."}], tool_calls=[CALL])
        shown = self.show(large)
        assert isinstance(shown, AIMessage)
        assert (shown.content, shown.tool_calls) == ("Done.", [CALL])
        assert "left out" in str(self.show(AIMessage([self.THOUGHT])).content), "never empty"

    def test_lines_stand_for_other_blocks_and_media_stay(self) -> None:
        text = {"type": "text", "text": "Done."}
        assert self.show(AIMessage([self.FOUND, text])).content == (
            "Done.\n[web_search_tool_result: m1]"
        )
        assert self.show(HumanMessage([self.FOUND, text, IMAGE])).content == [
            {"type": "text", "text": "Done.\n[web_search_tool_result: m1]"},
            IMAGE,
        ]

    @pytest.mark.slow
    @given(st.data(), st.integers(100, 400))
    def test_a_message_of_any_make_up_has_twice_the_cap_at_most(
        self, data: st.DataObject, cap: int
    ) -> None:
        shown = self.show(data.draw(any_messages), cap)
        assert COUNTER.message(shown) <= 2 * cap + 80, "a line each for eight kinds is free"


class TestDays:
    """Each day has a line above the first user message of it, and no other message has one."""

    SAID = (HumanMessage("Hi"), AIMessage("Hello"), HumanMessage("Well?"), AIMessage("Yes"))

    def dated(self, *days: int) -> list[StoredMessage]:
        said = [self.SAID[n % 4] for n in range(len(days))]
        return [
            messages_of([m], start=n, time=DAYS[day - 1])[0]
            for n, (m, day) in enumerate(zip(said, days, strict=True), start=1)
        ]

    def test_where_the_day_changes(self) -> None:
        stored = self.dated(1, 2, 2, 2, 2, 3, 3)
        shown = [str(m.content) for m in lay_out(layout(), stored, []).messages[1:]]
        assert shown[0] == "-- 2026-03-01 (Sunday) --\nHi"
        assert shown[2] == "-- 2026-03-02 (Monday) --\nWell?"
        assert shown[6] == "-- 2026-03-03 (Tuesday) --\nWell?"
        assert [text.partition("\n")[0] for text in shown[1::2]] == ["Hello", "Yes", "Hello"]
        assert shown[4] == "Hi"

    def test_the_first_message_in_view_has_its_own(self) -> None:
        stored = self.dated(1, 1, 1)
        (_, shown) = lay_out(layout(), stored, [], view=3).messages
        assert shown.content == "-- 2026-03-01 (Sunday) --\nWell?"

    @pytest.mark.parametrize("order", ["ledger", "spec"])
    def test_in_chinese_in_blocks_and_under_a_note(self, order: LayoutName) -> None:
        stored = [*self.dated(1), *messages_of([HumanMessage([IMAGE])], start=2, time=DAYS[6])]
        notes = [note(2, recalled("t1", "m1"))]
        prompt = layout(order).build_prompt("", stored, notes, lambda n: stored[n - 1], "zh")
        assert prompt.messages[-2].content == "-- 2026-03-01（星期日）--\nHi"
        content = prompt.messages[-1].content
        assert isinstance(content, list)
        assert content[:2] == [{"type": "text", "text": "-- 2026-03-07（星期六）--"}, IMAGE]

    def test_a_time_that_is_none_adds_nothing(self) -> None:
        stored = messages_of([HumanMessage("Hi")], time="some day")
        assert lay_out(layout(), stored, []).messages[-1].content == "Hi"

    @given(st.lists(st.integers(0, 1), min_size=4, max_size=24), st.integers(1, 3))
    def test_they_are_counted(self, steps: list[int], view: int) -> None:
        days = [1 + sum(steps[: n + 1]) for n in range(len(steps))]
        stored = self.dated(*days)
        prompt = lay_out(layout(), stored, [], view=view)
        assert sum(prompt.sections.values()) == pytest.approx(
            sum(map(COUNTER.message, prompt.messages)), abs=len(days)
        )


texts = st.text("abc 茶 雨", max_size=12) | st.just("long " * 300)
replies = st.lists(
    st.one_of(
        texts.map(AIMessage),
        st.just(AIMessage("", tool_calls=[CALL])),
        texts.map(lambda t: ToolMessage(t, tool_call_id="c")),
    ),
    max_size=3,
).filter(lambda said: not (said and isinstance(said[0], ToolMessage)))
rounds = st.lists(
    st.tuples(texts.map(HumanMessage) | st.just(HumanMessage([IMAGE])), replies, st.booleans()),
    min_size=2,
    max_size=8,
)


@pytest.mark.slow
@given(rounds, st.integers(1, 400))
def test_the_ledger_only_grows_at_its_end(
    turns: list[tuple[HumanMessage, list[BaseMessage], bool]], cap: int
) -> None:
    arranged = layout(cap=cap)
    stored: list[StoredMessage] = []
    notes: list[Note] = []
    before: list[tuple[object, ...]] = []
    for question, answers, recalls in turns:
        stored += messages_of([question], len(stored) + 1, DAYS[len(notes)])
        if recalls:
            quotes = [r.id for r in stored[:-1]][:2]
            notes.append(note(len(stored), recalled("t1", *quotes, summary="It rained.")))
        now = sent(lay_out(arranged, stored, notes).messages)
        assert now[: len(before)] == before
        before = now
        stored += messages_of(answers, start=len(stored) + 1)


@st.composite
def loops(draw: st.DrawFn) -> list[BaseMessage]:
    """Calls one after another or at once, with their results but for the last few."""
    said: list[BaseMessage] = []
    for step in range(draw(st.integers(0, 9))):
        called = draw(st.lists(calls, min_size=1, max_size=5))
        called = [{**c, "id": f"{step}-{n}"} for n, c in enumerate(called)]
        said.append(AIMessage(draw(any_content), tool_calls=called))
        said += [ToolMessage(draw(any_content), tool_call_id=c["id"]) for c in called]
    return said[: len(said) - draw(st.integers(0, 2))]


@pytest.mark.slow
@given(st.lists(any_messages, min_size=1, max_size=20), loops())
def test_messages_of_any_make_up_fit_the_room(
    said: list[BaseMessage], loop: list[BaseMessage]
) -> None:
    """Only the newest reply of the running turn may be too large, as providers want it whole."""
    stored, room = messages_of([*said, HumanMessage("long " * 900)]), 1_500
    prompt = layout(cap=500).build_prompt("", stored, [], no_note, "en", loop, room=room)
    size = sum(map(COUNTER.message, prompt.messages))
    replies = [m for m in prompt.messages if isinstance(m, AIMessage)]
    newest = COUNTER.message(replies[-1]) if loop else 0
    # Where two texts are joined there may be a token between them; the window has a margin.
    assert size <= room + 2 or size - newest <= room // 2
    # A result that nothing called for is sent as words, which cost a little less.
    assert -5 <= prompt.sections["tail"] - size <= 5 + 8 * len(said)
    calls_sent = [c["id"] for m in prompt.messages for c in getattr(m, "tool_calls", [])]
    assert calls_sent == [m.tool_call_id for m in prompt.messages if isinstance(m, ToolMessage)]


@cache
def prompts_of_a_turn(steps: int, parallel: int = 1) -> list[list[BaseMessage]]:
    """The prompt of each step of a turn, in which tools say more than there is room for."""
    stored, loop, found = chat(1), list[BaseMessage](), list[list[BaseMessage]]()
    for step in range(steps):
        ids = [f"{step}-{n}" for n in range(parallel)]
        loop.append(AIMessage("", tool_calls=[{**CALL, "id": i} for i in ids]))
        loop += [ToolMessage(f"{i} {'word ' * 600}", tool_call_id=i) for i in ids]
        prompt = layout().build_prompt("", stored, [], no_note, "en", loop, room=1_600)
        assert sum(map(COUNTER.message, prompt.messages)) <= 1_600
        found.append(prompt.messages)
    return found


class TestRunningTurn:
    """What tools said fits what the window leaves, and the prompt changes seldom by it."""

    def test_results_of_calls_at_once_are_shown_in_part_all_of_them(self) -> None:
        (sent_messages,) = prompts_of_a_turn(1, parallel=10)
        results = [m.text for m in sent_messages if isinstance(m, ToolMessage)]
        assert [text.split()[0] for text in results] == [f"0-{n}" for n in range(10)]

    @pytest.mark.slow
    def test_the_newest_result_has_most_room(self) -> None:
        *_, older, newest = prompts_of_a_turn(60)[7][2::2]
        assert COUNTER.message(newest) > 1.5 * COUNTER.message(older)

    @pytest.mark.slow
    def test_what_stands_before_the_newest_changes_seldom(self) -> None:
        found = [sent(messages) for messages in prompts_of_a_turn(60)[:40]]
        kept = [b[: len(a) - 1] == a[:-1] for a, b in itertools.pairwise(found)]
        assert kept.count(False) <= 12

    @pytest.mark.slow
    def test_of_the_oldest_calls_a_line_is_left(self) -> None:
        first, *rest = prompts_of_a_turn(60)[-1]
        assert "earlier messages are not shown --" in first.text
        assert first.text.startswith("question 1")
        assert [m.type for m in rest[:2]] == ["ai", "tool"]


steps = st.builds(
    lambda said, result: [
        AIMessage(said, tool_calls=[CALL]),
        ToolMessage(result, tool_call_id="c"),
    ],
    texts,
    texts | st.just("[m1] user: 长\n" * 300),
)


@pytest.mark.slow
@given(st.lists(st.tuples(texts, st.lists(steps, max_size=3)), min_size=2, max_size=4))
def test_so_it_does_within_a_turn_and_into_the_next(
    turns: list[tuple[str, list[list[BaseMessage]]]],
) -> None:
    stored: list[StoredMessage] = []
    before: list[tuple[object, ...]] = []
    for question, calls in turns:
        stored += messages_of([HumanMessage(question)], len(stored) + 1)
        for step in range(len(calls) + 1):
            loop = [m for call in calls[:step] for m in call]
            now = sent(layout().build_prompt("", stored, [], no_note, "en", loop).messages)
            assert now[: len(before)] == before
            before = now
        said = [*(m for call in calls for m in call), AIMessage("Done.")]
        stored += messages_of(said, len(stored) + 1)


def no_note(number: int) -> StoredMessage:
    raise AssertionError(number)


@pytest.mark.slow
@few()
@given(st.lists(st.sampled_from(["茶", "雨", "山"]), min_size=20, max_size=28))
def test_prompts_of_a_session_grow_at_their_end_but_for_splits(
    tmp_path: Path, tags: list[str]
) -> None:
    folder, responder, config = Path(mkdtemp(dir=tmp_path)), ScriptedResponder(), thread()
    graph = open_graph(folder, fake_roles(responder))
    before: list[tuple[object, ...]] = []
    splits = 0
    for place, tag in enumerate(tags):
        tell(graph, config, chatter(tag, place))
        now = sent(responder.requests[-1].messages)
        if any(
            e.startswith(("split", "dropped")) for e in last_receipt(folder, graph, config).events
        ):
            splits += 1
        else:
            assert now[: len(before)] == before
        before = now
    assert 1 <= splits <= len(tags) // 2
