"""The layout of first round, segment summaries and newest rounds (spec 003, 2 and 5.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import given, strategies as st
from langchain_core.messages import BaseMessage

from topicloom.context.layout import Layout
from topicloom.context.segments import (
    ContextWindowPolicy,
    Segment,
    SegmentLayout,
    SummaryManager,
    take_newest_fitting,
)
from topicloom.context.token_count import EstimatingCounter
from topicloom.context.tokens import count_budget_tokens
from topicloom.prompts.wording import get_wording
from topicloom.state.rounds import group_rounds
from topicloom.state.stored_message import StoredMessage, get_text


class BudgetCounter(EstimatingCounter):
    """Counts a CJK character or four others as a token, and no frame of a message."""

    def text(self, text: str) -> int:
        return count_budget_tokens(text)

    def message(self, message: BaseMessage) -> int:
        return count_budget_tokens(f"{message.name or message.type}: {get_text(message)}")


COUNTER = BudgetCounter("o200k")


def stored(rounds: int, opens: Sequence[int] = ()) -> list[StoredMessage]:
    """Rounds of a user message and a reply; some rounds begin a topic."""
    found = []
    for number in range(1, rounds + 1):
        begins = number in opens
        seq = 2 * number - 1
        found += [
            StoredMessage(seq=seq, role="user", text=f"said {number}", time="", opens=begins),
            StoredMessage(seq=seq + 1, role="assistant", text=f"heard {number}", time=""),
        ]
    return found


class Summarizer:
    """Says which messages it was given, and remembers them."""

    def __init__(self) -> None:
        self.given: list[list[StoredMessage]] = []

    def __call__(self, stored: Sequence[StoredMessage]) -> str:
        self.given.append(list(stored))
        return f"{stored[0].text} to {stored[-1].text}"


def layout(
    summarize: Summarizer | None = None, policy: ContextWindowPolicy | None = None
) -> SegmentLayout:
    manager = SummaryManager(summarize or Summarizer())
    return SegmentLayout(COUNTER, manager, policy or ContextWindowPolicy())


class TestPolicy:
    def test_the_first_round_and_the_newest_five(self) -> None:
        first, between, last = ContextWindowPolicy().select(group_rounds(stored(10)))
        assert [b.first for b in first] == [1]
        assert [b.first for b in last] == [11, 13, 15, 17, 19]
        assert len(between) == 4

    def test_a_smaller_window_shows_fewer_rounds(self) -> None:
        _, between, last = ContextWindowPolicy(last=3).select(group_rounds(stored(10)))
        assert len(between) == 6
        assert [b.first for b in last] == [15, 17, 19]

    @given(st.integers(0, 20), st.integers(0, 4), st.integers(1, 8))
    def test_every_round_is_in_one_part(self, count: int, first: int, last: int) -> None:
        rounds = group_rounds(stored(count))
        parts = ContextWindowPolicy(first, last).select(rounds)
        assert [b.first for part in parts for b in part] == [b.first for b in rounds]


class TestSummaries:
    def test_segments_have_eight_rounds_where_no_topic_begins(self) -> None:
        summarize = Summarizer()
        segments, rest = SummaryManager(summarize).build(group_rounds(stored(20)))
        assert [(s.first, s.last) for s in segments] == [(1, 16), (17, 32)]
        assert [b.first for b in rest] == [33, 35, 37, 39]
        assert [len(given) for given in summarize.given] == [16, 16]

    def test_a_segment_ends_where_a_topic_begins(self) -> None:
        rounds = group_rounds(stored(14, opens=[3, 7, 13]))
        segments, rest = SummaryManager(Summarizer()).build(rounds)
        # Round 3 comes too early to end a segment, round 7 ends one of six.
        assert [(s.first, s.last) for s in segments] == [(1, 12), (13, 24)]
        assert len(rest) == 2

    def test_a_topic_that_begins_behind_ends_a_segment(self) -> None:
        rounds = group_rounds(stored(6, opens=[6]))
        build = SummaryManager(Summarizer()).build
        assert not build(rounds[:5])[0]
        assert [s.last for s in build(rounds[:5], rounds[5:])[0]] == [10]

    @given(st.sets(st.integers(1, 40)), st.integers(1, 40))
    def test_segments_are_only_ever_added(self, opens: set[int], now: int) -> None:
        """Each is made once, of originals, and says the same for ever."""
        summarize = Summarizer()
        manager = SummaryManager(summarize)
        rounds = group_rounds(stored(40, opens=sorted(opens)))
        before, waiting = manager.build(rounds[:now], rounds[now : now + 1])
        after, rest = manager.build(rounds)
        assert after[: len(before)] == before
        originals = {r.text for b in rounds for r in b.messages}
        assert all(r.text in originals for given in summarize.given for r in given)
        assert len(summarize.given) == len(after)
        told = [r.seq for given in summarize.given for r in given]
        assert told + [r.seq for b in rest for r in b.messages] == list(range(1, 81))
        assert len(waiting) <= 8

    @given(st.lists(st.integers(0, 60), max_size=8), st.integers(0, 120))
    def test_whole_segments_fit_or_go(self, sizes: list[int], room: int) -> None:
        segments = [Segment(n, n, "x" * size) for n, size in enumerate(sizes)]
        kept = take_newest_fitting(segments, COUNTER, room)
        assert list(kept) == segments[len(segments) - len(kept) :]
        assert sum(COUNTER.text(f"{s.line}\n") for s in kept) <= room
        if len(kept) < len(segments):
            one_more = segments[len(segments) - len(kept) - 1]
            assert sum(COUNTER.text(f"{s.line}\n") for s in [one_more, *kept]) > room


def sent(system: str, shown: Sequence[StoredMessage]) -> list[BaseMessage]:
    """What the main model is sent of it."""
    laid = Layout(COUNTER, cap=4_000)
    return laid.build_prompt(system, shown, (), lambda n: shown[n - 1], "en").messages


class TestLayout:
    def test_system_with_summaries_then_first_round_then_newest(self) -> None:
        laid = layout().build_prompt("Be kind.", stored(30), 10_000, "en")
        system, *said = map(get_text, sent(*laid))
        assert system.splitlines() == [
            "Be kind.",
            "",
            get_wording("en").summaries,
            "[m3–m18] said 2 to heard 9",
            "[m19–m34] said 10 to heard 17",
            "[m35–m50] said 18 to heard 25",
        ]
        assert said[:2] == ["said 1", "heard 1"]
        assert said[2:4] == ["said 26", "heard 26"]
        assert said[-1] == "heard 30"

    def test_what_makes_no_whole_segment_stays_in_view(self) -> None:
        system, shown = layout().build_prompt("", stored(13), 10_000, "en")
        assert not system
        assert [r.seq for r in shown] == list(range(1, 27))

    def test_a_short_conversation_is_all_there(self) -> None:
        laid = layout().build_prompt("", stored(3), 10_000, "zh")
        assert [get_text(m) for m in sent(*laid)] == [r.text for r in stored(3)]

    def test_the_newest_round_stays_in_any_case(self) -> None:
        _, shown = layout().build_prompt("", stored(30), 1, "en")
        assert [r.text for r in shown] == ["said 30", "heard 30"]

    def test_nothing_gives_nothing(self) -> None:
        assert layout().build_prompt("", [], 100, "en") == ("", [])

    @given(st.integers(1, 60), st.integers(20, 400))
    def test_it_keeps_to_the_budget(self, rounds: int, budget: int) -> None:
        system, shown = layout().build_prompt("Be kind.", stored(rounds), budget, "en")
        newest, in_view = {2 * rounds - 1, 2 * rounds}, {r.seq for r in shown}
        tokens = sum(map(COUNTER.message, sent(system, shown)))
        assert tokens <= budget or in_view == newest
        assert newest <= in_view
        summed_up = [map(int, ends) for ends in re.findall(r"\[m(\d+)–m(\d+)\]", system)]
        assert not in_view & {n for first, last in summed_up for n in range(first, last + 1)}
