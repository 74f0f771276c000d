"""What comes first for a query: words, surroundings, price, and who is asked about."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom.search import ranking
from topicloom.search.bm25 import LexicalIndex
from topicloom.search.ranking import (
    Messages,
    asked_first,
    keep_floor,
    level_languages,
    listed_things,
    trust_words,
    weights_for,
    words_of_day,
)

Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]


def rank(query: str, cosine: Numbers, lexical: Numbers, messages: Messages) -> Numbers:
    return ranking.rank(query, cosine, lexical, messages, weights_for(messages))


def talk(
    count: int,
    *,
    costs: Sequence[float] | None = None,
    names: Sequence[str] = ("",),
    speaker: Sequence[int] | None = None,
    users: Sequence[int] = (),
    days: Sequence[str] | None = None,
) -> Messages:
    return Messages(
        costs=np.array(costs or [20.0] * count),
        from_user=np.array([float(i in users) for i in range(count)]),
        days=[words_of_day(day) for day in days or [""] * count],
        day=np.arange(count),
        names=names,
        speaker=np.array(speaker or [i % len(names) for i in range(count)]),
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
        order = np.argsort(-rank("q", peaks(40, 17), peaks(40, 17), talk(40)))
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
        assert np.diff(rank(mine, scores, scores, messages)[[31, 10]]) > 1
        assert np.diff(rank(yours, scores, scores, messages)[[31, 10]]) < 1

    def test_a_day_that_is_named_counts(self) -> None:
        days = ["2026-05-06"] * 20 + ["2026-05-07"] * 20
        scores = peaks(40, 10, 30)
        priority = rank("What did she say on 7 May?", scores, scores, talk(40, days=days))
        assert priority[30] > priority[10]


class TestSecondLook:
    def test_what_was_found_first_names_what_else_to_look_for(self) -> None:
        words = LexicalIndex()
        texts = [f"Nothing of note happened on walk {n}, {n * 7} steps" for n in range(60)]
        texts[10], texts[20] = "My dog Rex ate a shoe", "The dog again: Rex found the park"
        texts[40] = "Rex went to the vet"
        for text in texts:
            words.add("Ann", text)
        lexical = words.scores("How is your dog?")[0]
        messages, weights = talk(60), weights_for(talk(60))
        given = "How is your dog?", np.zeros(60), lexical, messages, weights, 1.0
        once = ranking.rank(*given)
        twice = ranking.rank_again(*given, lambda best: words.echoes(best, "How is your dog?"))
        assert set(np.argsort(-twice)[:3]) == {10, 20, 40} != set(np.argsort(-once)[:3])

    def test_words_that_all_use_are_no_names(self) -> None:
        words = LexicalIndex()
        for text in ("We walked", "We walked", "We walked far", "We sat"):
            words.add("Ann", text)
        assert not words.echoes([0, 1], "dog").any()


class TestMeeting:
    def test_more_than_two_with_a_part_make_a_meeting(self) -> None:
        of_two = talk(60, names=("Ann", "Ben"))
        of_three = talk(60, names=("Ann", "Ben", "Cem"))
        assert weights_for(of_three) != weights_for(of_two) == weights_for(talk(60))

    def test_who_puts_in_a_word_makes_no_meeting(self) -> None:
        speaker = [0, 1] * 29 + [2, 0]
        assert weights_for(talk(60, names=("Ann", "Ben", "Cem"), speaker=speaker)) == weights_for(
            talk(60)
        )

    def test_speakers_without_names_make_none(self) -> None:
        assert weights_for(talk(60, names=("", "Ann", "Ben"))) == weights_for(talk(60))

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
        days=["2026-05-06"] * len(rows),
    )
    priority = rank(query, np.array(cosine), np.array(lexical), messages)
    assert priority.shape == (len(rows),)
    assert np.isfinite(priority).all()


_PLACED = st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.integers(1, 400)), max_size=60)


class TestFloor:
    @given(_PLACED, st.integers(1, 4_000), st.data())
    def test_what_flat_search_finds_in_its_share_comes_within_the_budget(
        self, rows: list[tuple[float, float, int]], budget: int, data: st.DataObject
    ) -> None:
        priority, flat, costs = np.array(rows, dtype=float).reshape(-1, 3).T
        best = np.argsort(-priority, kind="stable")
        hidden = data.draw(st.sets(st.sampled_from(best.tolist()))) if rows else set()
        best = best[~np.isin(best, list(hidden))]
        order = keep_floor(best, flat, costs, budget)
        assert sorted(order) == sorted(best)
        price = costs + ranking._FRAME
        found = best[np.argsort(-flat[best], kind="stable")]
        found = found[np.cumsum(price[found]) <= ranking._FLOOR * budget]
        within = np.cumsum(price[order]) <= (ranking._FLOOR + ranking._SAFE) * budget
        assert set(found) <= set(order[within])
        ahead = int(np.searchsorted(np.cumsum(price[best]), ranking._SAFE * budget, "right"))
        assert list(order[:ahead]) == list(best[:ahead])

    def test_it_only_adds_what_was_too_far_behind(self) -> None:
        """Where the ranking agrees with flat search, its order stays."""
        best = np.arange(30)
        flat = -np.arange(30.0)
        assert keep_floor(best, flat, np.full(30, 50.0), 400).tolist() == best.tolist()


class TestDaysThatAreAskedFor:
    BEST = np.array([5, 0, 1, 4, 2, 3])

    def test_their_messages_come_first_and_every_topic_has_its_say(self) -> None:
        asked = np.array([True, True, True, True, False, False])
        topics = np.array([1, 1, 1, 2, 2, 3])
        assert asked_first(self.BEST, asked, topics).tolist() == [0, 3, 1, 2, 5, 4]

    def test_without_any_the_order_stays(self) -> None:
        nothing = np.zeros(6, dtype=np.bool_)
        assert asked_first(self.BEST, nothing, np.ones(6, dtype=int)).tolist() == list(self.BEST)


class TestLanguages:
    def test_words_are_trusted_in_chinese_as_far_as_they_were_found(self) -> None:
        assert trust_words("她有什么忌口", 0.2) == pytest.approx(0.05)
        assert trust_words("她有什么忌口", 0.9) == trust_words("她有什么忌口", 1.0) == 1
        assert trust_words("what can't she eat", 0.2) == 1
        assert trust_words("彼女は何を食べられませんか", 0.2) == 1

    def test_a_language_gives_half_of_what_it_gave(self) -> None:
        cosine = np.r_[np.full(990, 0.2), np.full(990, 0.0)]
        chinese = np.arange(1_980) >= 990
        levelled = level_languages(cosine, chinese)
        assert levelled[0] - levelled[-1] == pytest.approx(0.1, abs=0.002)
        few = level_languages(np.r_[cosine[:990], 0.9], np.r_[chinese[:990], True])
        assert int(few.argmax()) == 990

    def test_one_language_changes_nothing(self) -> None:
        cosine = np.linspace(0, 1, 20)
        for chinese in (np.zeros(20, bool), np.ones(20, bool)):
            assert np.array_equal(level_languages(cosine, chinese), cosine)


@each_row(
    ("query", "things"),
    [
        ("种花、修车和做菜，第一次都是怎么说的？", ["种花", "修车", "做菜"]),
        (
            "What about chess, fishing, and the garden?",
            ["What about chess", "fishing", "the garden?"],
        ),
        ("我妈来的时候，做什么菜好？", []),
        ("When did Ann and Bo meet?", []),
        (", ".join(f"dish {n}" for n in range(40)), []),
    ],
)
def test_what_a_query_lists(query: str, things: list[str]) -> None:
    assert [part for part in listed_things(query) if "第一次" not in part] == things


def test_the_best_for_each_thing_comes_behind_half_of_the_budget() -> None:
    best, costs, flat = np.arange(8), np.full(8, 6.0), -np.arange(8.0)
    things = [np.eye(8)[7], np.eye(8)[0], np.eye(8)[5]]
    assert keep_floor(best, flat, costs, 60, things).tolist() == [0, 1, 2, 5, 7, 3, 4, 6]
    dear = np.where(best == 7, 40.0, costs)
    assert keep_floor(best, flat, dear, 60, things).tolist() == best.tolist()
    assert keep_floor(best[:0], flat, costs, 60, things).tolist() == []
