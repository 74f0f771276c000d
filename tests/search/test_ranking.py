"""What comes first for a query: words, surroundings, price, who is asked about, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, strategies as st
from tables import each_row

from topicloom.search.ranking import (
    FLAT,
    LOOK_UP,
    MEETING,
    RECALL,
    TALK,
    Asked,
    Messages,
    prefer_user,
    put_days_first,
)

Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]


def ask(query: str, cosine: Numbers, lexical: Numbers, messages: Messages) -> Asked:
    return Asked(query, messages, cosine, lexical, cover=1.0)


def rank(query: str, cosine: Numbers, lexical: Numbers, messages: Messages) -> Numbers:
    return RECALL.rank(ask(query, cosine, lexical, messages))


def talk(
    count: int,
    *,
    costs: Sequence[float] | None = None,
    names: Sequence[str] = ("",),
    speaker: Sequence[int] | None = None,
    users: Sequence[int] = (),
    topics: Sequence[int] | None = None,
) -> Messages:
    return Messages(
        costs=np.array(costs or [20.0] * count),
        from_user=np.array([float(i in users) for i in range(count)]),
        names=names,
        speaker=np.array(speaker or [i % len(names) for i in range(count)]),
        topics=np.array(topics or [0] * count),
        opens=np.zeros(count, dtype=np.bool_),
    )


def peaks(count: int, *places: int) -> Numbers:
    scores = np.zeros(count)
    scores[list(places)] = 1.0
    return scores


def first(priority: Numbers) -> int:
    return int(priority.argmax())


class TestDialogue:
    def test_what_is_found_comes_first(self) -> None:
        assert first(rank("q", peaks(40, 17), peaks(40, 17), talk(40))) == 17

    def test_what_stands_beside_it_comes_next(self) -> None:
        messages = talk(40, names=("Ann", "Ben"))
        order = np.argsort(-rank("q", peaks(40, 17), peaks(40, 17), messages))
        assert {int(i) for i in order[1:3]} == {16, 18}

    def test_where_nobody_answers_what_stands_beside_it_counts_less(self) -> None:
        """Who writes in bursts jumps from one thing to the next."""
        scores = peaks(40, 17)
        scores[30] = 0.12
        turns, bursts = (
            rank("q", scores, scores, talk(40, names=("Ann", "Ben"), speaker=speaker))
            for speaker in ([0, 1] * 20, [0] * 20 + [1] * 20)
        )
        assert turns[18] > turns[30]
        assert bursts[18] < bursts[30]

    def test_of_two_alike_the_shorter_comes_first(self) -> None:
        costs = [20.0] * 40
        costs[30] = 400.0
        priority = rank("q", peaks(40, 10, 30), peaks(40, 10, 30), talk(40, costs=costs))
        assert priority[10] > priority[30]

    def test_of_two_alike_the_one_who_is_named_comes_first(self) -> None:
        messages = talk(40, names=("Ann", "Ben"))
        priority = rank("What did Ben bake?", peaks(40, 10, 31), peaks(40, 10, 31), messages)
        assert priority[31] > priority[10]

    def test_a_chinese_name_is_seen_within_a_sentence(self) -> None:
        messages = talk(40, names=("李雷", "王芳"))
        priority = rank("王芳说她去了哪里", peaks(40, 10, 31), peaks(40, 10, 31), messages)
        assert priority[31] > priority[10]

    def test_what_i_said_is_mine(self) -> None:
        messages = talk(40, users=range(0, 40, 2))
        scores = peaks(40, 10, 31)
        mine, yours = "When did I book the hall?", "What did you suggest for the hall?"
        mine_first = np.diff(rank(mine, scores, scores, messages)[[31, 10]])
        assert mine_first > np.diff(rank(yours, scores, scores, messages)[[31, 10]]) > 0

    def test_in_a_few_messages_the_one_that_says_it_comes_first_though_it_is_the_longest(
        self,
    ) -> None:
        messages = talk(4, costs=[20.0, 8.0, 9.0, 25.0], users=range(4))
        cosine = np.array([0.3, 0.1, 0.1, 0.15])
        priority = LOOK_UP.rank(ask("q", cosine, peaks(4, 3), messages))
        assert first(priority) == 3


class TestMeeting:
    def test_more_than_two_with_a_part_make_a_meeting(self) -> None:
        of_two = talk(60, names=("Ann", "Ben"))
        of_three = talk(60, names=("Ann", "Ben", "Cem"))
        assert of_three.weights == MEETING
        assert of_two.weights == talk(60).weights == TALK

    def test_who_puts_in_a_word_makes_no_meeting(self) -> None:
        speaker = [0, 1] * 29 + [2, 0]
        assert talk(60, names=("Ann", "Ben", "Cem"), speaker=speaker).weights == TALK

    def test_speakers_without_names_make_none(self) -> None:
        assert talk(60, names=("", "Ann", "Ben")).weights == TALK

    def test_a_passage_that_is_about_it_comes_before_a_single_word_elsewhere(self) -> None:
        scores = peaks(90, 10, *range(50, 60, 2))
        names = ("Ann", "Ben", "Cem")
        assert 50 <= first(rank("q", scores, scores, talk(90, names=names))) < 60

    def test_the_short_ones_between_are_worth_more_than_others(self) -> None:
        """A nod belongs to what it stands in, though its own words say nothing."""
        costs = [20.0, 3.0] * 45
        scores = peaks(90, *range(50, 60, 2))
        priority = rank("q", scores, scores, talk(90, costs=costs, names=("Ann", "Ben", "Cem")))
        assert min(priority[51:59:2]) > max(priority[1:40])


_SCORES = st.floats(0, 1, allow_nan=False)


@given(
    st.lists(
        st.tuples(_SCORES, _SCORES, st.integers(1, 5_000), st.integers(0, 3)),
        min_size=1,
        max_size=30,
    ),
    st.text(max_size=30),
)
def test_every_message_gets_a_finite_priority(
    rows: list[tuple[float, float, int, int]], query: str
) -> None:
    cosine, lexical, costs, speaker = zip(*rows, strict=True)
    messages = talk(
        len(rows),
        costs=[float(c) for c in costs],
        names=("", "Ann", "Ben", "王芳"),
        speaker=speaker,
        users=range(0, len(rows), 2),
    )
    priority = rank(query, np.array(cosine), np.array(lexical), messages)
    assert priority.shape == (len(rows),)
    assert np.isfinite(priority).all()


class TestRemarks:
    def test_words_count_less_where_few_of_them_were_found(self) -> None:
        """A remark shares hardly a word with what it is related to."""
        meant, worded = peaks(40, 10), peaks(40, 30)
        asked = ask("Somehow nothing tastes of anything", meant, worded, talk(40))
        sure, unsure = asked, replace(asked, cover=0.1)
        assert FLAT.rank(sure)[10] == FLAT.rank(sure)[30]
        assert FLAT.rank(unsure)[10] > FLAT.rank(unsure)[30] > FLAT.rank(unsure)[0]


class TestTopics:
    def with_assistant(self, count: int, **given: Any) -> Messages:
        half = count // 2
        return talk(count, users=range(0, count, 2), topics=[1] * half + [2] * half, **given)

    def test_what_fits_comes_earlier_in_a_topic_that_the_turn_is_in(self) -> None:
        messages = self.with_assistant(40)
        asked = ask("q", peaks(40, 10, 30), peaks(40, 10, 30), messages)
        in_second = replace(asked, in_turn=np.where(messages.topics == 2, 0.9, 0.1))
        assert first(RECALL.rank(in_second)) == 30

    def test_where_a_stretch_of_it_began_comes_first_in_it(self) -> None:
        messages = self.with_assistant(200)
        scores, begins = peaks(200, 110, 120), np.arange(200) == 110
        messages = replace(messages, opens=begins)
        in_second = np.where(messages.topics == 2, 0.9, 0.1)
        found = RECALL.rank(replace(ask("q", scores, scores, messages), in_turn=in_second))
        assert found[120] < found[110]

    def test_what_does_not_fit_stays_where_it_is(self) -> None:
        messages = self.with_assistant(60)
        asked = ask("q", peaks(60, 10), peaks(60, 10), messages)
        in_second = replace(asked, in_turn=np.where(messages.topics == 2, 1.0, 0.0))
        assert RECALL.rank(in_second).tolist() == RECALL.rank(asked).tolist()

    def test_among_people_no_topic_is_preferred(self) -> None:
        messages = talk(40, names=("Ann", "Ben"), topics=[1] * 20 + [2] * 20)
        asked = ask("q", peaks(40, 10, 30), peaks(40, 10, 30), messages)
        in_second = replace(asked, in_turn=np.where(messages.topics == 2, 1.0, 0.0))
        assert RECALL.rank(in_second).tolist() == RECALL.rank(asked).tolist()

    def test_where_nothing_is_quoted_neither_topics_nor_length_count(self) -> None:
        messages = self.with_assistant(40, costs=[20.0, 100.0] * 20)
        asked = ask("q", peaks(40, 39), peaks(40, 39), messages)
        assert first(LOOK_UP.rank(replace(asked, in_turn=np.arange(40.0)[::-1]))) == 39


class TestUser:
    @each_row("names", [[""], ["Assistant"], ["", "assistant"]])
    def test_own_words_come_earlier_in_talk_with_an_assistant(self, names: list[str]) -> None:
        messages = talk(40, users=range(0, 40, 2), names=names)
        scores = peaks(40, 10, 31)
        assert first(rank("Which hall was it?", scores, scores, messages)) == 10

    @each_row("names", [["Marta"], ["Marta", "Ben"]])
    def test_among_people_nobody_is_preferred(self, names: list[str]) -> None:
        messages = talk(40, users=range(0, 40, 2), names=names)
        asked = ask("Which hall was it?", peaks(40, 10), peaks(40, 10), messages)
        assert not prefer_user(asked, TALK, np.zeros(40)).any()


class TestDaysThatAreAskedFor:
    DAYS = np.array([True, True, True, True, False, False])

    def test_their_messages_come_first_and_every_topic_has_its_say(self) -> None:
        asked = ask("q", peaks(6, 0), peaks(6, 0), talk(6, topics=[1, 1, 1, 2, 2, 3]))
        scores = np.array([5.0, 4.0, 1.0, 2.0, 3.0, 6.0])
        found = put_days_first(replace(asked, days=self.DAYS), TALK, scores)
        assert np.argsort(-found).tolist() == [0, 3, 1, 2, 5, 4]

    def test_without_any_the_order_stays(self) -> None:
        asked = ask("q", peaks(6, 0), peaks(6, 0), talk(6))
        scores = np.arange(6.0)
        for days in (None, np.zeros(6, dtype=np.bool_)):
            assert put_days_first(replace(asked, days=days), TALK, scores).tolist() == [*range(6)]


def test_another_order_is_another_value() -> None:
    backwards = replace(RECALL, steps=(*RECALL.steps, lambda asked, weights, scores: -scores))
    asked = ask("q", peaks(40, 17), peaks(40, 17), talk(40, names=("Ann", "Ben")))
    assert first(RECALL.rank(asked)) == 17 == int(backwards.rank(asked).argmin())
    heavy = replace(RECALL, weights=replace(TALK, near=9.0))
    assert heavy.rank(asked)[16] > RECALL.rank(asked)[16]
