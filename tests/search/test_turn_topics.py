"""Which topics a turn is in, and how the ranking prefers them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from tables import each_row

from topicloom.search.embedder import Vectors, unit_rows
from topicloom.search.encoders import default_embedder
from topicloom.search.ranking import Floats
from topicloom.search.turn_order import (
    ANY,
    GOING_ON,
    fade_lately,
    fill_in_turn,
    is_with_assistant,
    prefer_lately_said,
    prefer_own_words,
    prefer_topics,
)
from topicloom.search.turn_topics import (
    Grouping,
    goes_on,
    group_by_topic,
    prefer_recent_topics,
    weigh_topics,
)

RNG = np.random.default_rng(7)
KITCHEN, GARDEN, ARCHIVED = 1, 2, 3
DIRECTIONS = unit_rows(RNG.normal(size=(4, 16)).astype(np.float32))
CODE = np.array([KITCHEN, KITCHEN, GARDEN, GARDEN, KITCHEN, ARCHIVED, GARDEN])
MEAN = DIRECTIONS[CODE].mean(axis=0)
CLEAR, UNCLEAR = np.array([0, 0.9, 0.1]), np.array([0, 0.6, 0.4])
NOTHING_FITS = np.zeros(len(CODE))
NONE_BEGINS = np.zeros(len(CODE), dtype=np.bool_)


def grouping() -> Grouping:
    """Three topics of seven messages; the third one is archived."""
    return group_by_topic(CODE, DIRECTIONS)


class TestTopicsOfATurn:
    def test_a_message_near_a_topic_is_in_it(self) -> None:
        found = weigh_topics(
            DIRECTIONS[GARDEN], DIRECTIONS[:0], 0.0, NOTHING_FITS, MEAN, grouping()
        )
        assert found.argmax() == GARDEN
        assert found.sum() == pytest.approx(1)

    def test_a_message_that_says_little_is_in_the_topic_that_it_goes_on_with(self) -> None:
        vague = unit_rows((DIRECTIONS[KITCHEN] + DIRECTIONS[GARDEN])[None, :])[0]
        before = DIRECTIONS[[KITCHEN, KITCHEN]]
        alone = weigh_topics(vague, before, 0.0, NOTHING_FITS, MEAN, grouping(), [ARCHIVED])
        going_on = weigh_topics(vague, before, 0.9, NOTHING_FITS, MEAN, grouping(), [ARCHIVED])
        assert going_on[KITCHEN] > alone[KITCHEN]
        assert going_on.argmax() == KITCHEN

    def test_messages_that_fit_speak_for_their_topic(self) -> None:
        fits = np.where(CODE == GARDEN, 3.0, 0.0)
        vague = unit_rows((DIRECTIONS[KITCHEN] + DIRECTIONS[GARDEN])[None, :])[0]
        found = weigh_topics(vague, DIRECTIONS[:0], 0.0, fits, MEAN, grouping(), [ARCHIVED])
        assert found.argmax() == GARDEN

    def test_a_turn_is_in_no_archived_topic(self) -> None:
        fits = np.where(CODE == ARCHIVED, 9.0, 0.0)
        found = weigh_topics(
            DIRECTIONS[ARCHIVED], DIRECTIONS[:0], 0.0, fits, MEAN, grouping(), [ARCHIVED]
        )
        assert found[ARCHIVED] == 0
        assert found[0] == 0

    def test_without_topics_there_is_none(self) -> None:
        none = group_by_topic(np.zeros(3, dtype=int), DIRECTIONS[:1])
        found = weigh_topics(DIRECTIONS[0], DIRECTIONS[:0], 0.0, np.zeros(3), MEAN, none)
        assert found.tolist() == [0.0]


class TestReturns:
    BOTH = np.array([0.0, 0.5, 0.5, 0.0])

    def test_a_turn_is_less_likely_in_a_topic_the_longer_ago_it_was_spoken_of(self) -> None:
        opens = np.array([True, False, True, False, True, False, True])
        found = prefer_recent_topics(self.BOTH, grouping(), opens)
        assert found[GARDEN] > found[KITCHEN] > 0  # of the garden the newest stretch is
        assert found.sum() == pytest.approx(1)

    def test_messages_of_the_same_stretch_are_no_time(self) -> None:
        found = prefer_recent_topics(self.BOTH, grouping(), NONE_BEGINS)
        assert found == pytest.approx(self.BOTH)

    def test_what_is_said_tells_more(self) -> None:
        weights = np.array([0.0, 0.8, 0.2, 0.0])
        found = prefer_recent_topics(weights, grouping(), ~NONE_BEGINS)
        assert found.argmax() == KITCHEN

    def test_without_topics_there_is_none(self) -> None:
        assert not prefer_recent_topics(np.zeros(4), grouping(), NONE_BEGINS).any()


class TestPreference:
    def test_messages_of_a_likely_topic_rise_the_newest_most(self) -> None:
        weights = np.array([0.0, 0.0, 1.0, 0.0])
        found = prefer_topics(np.full(len(CODE), 1.5), weights, grouping(), NONE_BEGINS)
        assert np.argsort(-found, kind="stable")[:3].tolist() == [6, 3, 2]
        assert (found[CODE != GARDEN] == 1.5).all()

    def test_what_a_stretch_of_a_likely_topic_began_with_rises_most(self) -> None:
        weights = np.array([0.0, 0.0, 1.0, 0.0])
        beginnings = np.array([True, False, True, False, False, False, False])
        found = prefer_topics(np.full(len(CODE), 1.5), weights, grouping(), beginnings, GOING_ON)
        assert np.argsort(-found, kind="stable")[:3].tolist() == [2, 6, 3]
        assert (found[CODE != GARDEN] == 1.5).all()

    def test_what_does_not_fit_by_itself_does_not_rise(self) -> None:
        weights = np.array([0.0, 0.0, 1.0, 0.0])
        found = prefer_topics(np.full(len(CODE), 0.9), weights, grouping(), ~NONE_BEGINS, GOING_ON)
        assert (found == 0.9).all()

    @each_row("names", [[""], ["Assistant"], ["", "assistant"]])
    def test_own_words_rise_in_talk_with_an_assistant(self, names: list[str]) -> None:
        user = np.array([1.0, 0.0, 1.0, 0.0])
        opens = np.array([False, False, True, False])
        found = prefer_own_words(np.zeros(4), user, opens, np.zeros(4, dtype=np.bool_), names)
        assert np.argsort(-found, kind="stable")[:2].tolist() == [2, 0]

    def test_standing_requests_rise_most(self) -> None:
        user, opens = np.array([1.0, 0.0, 1.0]), np.array([False, False, True])
        found = prefer_own_words(np.zeros(3), user, opens, np.array([True, False, False]), [""])
        assert np.argsort(-found, kind="stable").tolist() == [0, 2, 1]

    @pytest.mark.parametrize(("user", "names"), [([1.0, 0.0], ["Marta"]), ([1.0, 1.0], [])])
    def test_among_people_nobody_is_preferred(self, user: list[float], names: list[str]) -> None:
        marks = np.array([True, False])
        found = prefer_own_words(np.zeros(2), np.array(user), marks, marks, names)
        assert found.tolist() == [0.0, 0.0]
        assert not is_with_assistant(np.array(user), names)

    def test_what_was_said_lately_rises_and_the_order_of_equals_is_by_age(self) -> None:
        found = prefer_lately_said(np.zeros(1_000), GOING_ON)
        assert np.argsort(-found).tolist() == list(reversed(range(1_000)))
        assert 1 < found[-1] <= 2
        assert 0 < found[0] < 0.02

    def test_the_longer_ago_its_topic_the_less_rises_what_was_said_lately(self) -> None:
        code = np.array([KITCHEN] * 10 + [GARDEN] * 990)
        topics = group_by_topic(code, DIRECTIONS)
        garden = fade_lately(np.array([0.0, 0.0, 1.0, 0.0]), topics)
        both = fade_lately(np.array([0.0, 0.8, 0.2, 0.0]), topics)
        kitchen = fade_lately(np.array([0.0, 1.0, 0.0, 0.0]), topics)
        assert garden == GOING_ON
        assert ANY.lately < both.lately < GOING_ON.lately
        assert kitchen.lately < 0.05
        assert kitchen.by_message == GOING_ON.by_message

    def test_without_topics_nothing_fades(self) -> None:
        assert fade_lately(np.zeros(4), grouping()) == GOING_ON

    def test_most_of_the_budget_is_filled_by_the_message_alone(self) -> None:
        alone, preferred = np.arange(6), np.arange(6)[::-1]
        found = fill_in_turn(alone, preferred, np.full(6, 10.0), 40, CLEAR)
        assert found.tolist() == [0, 1, 5, 4, 3, 2]

    def test_topics_fill_more_of_it_for_a_message_that_goes_on(self) -> None:
        alone, preferred = np.arange(6), np.arange(6)[::-1]
        found = fill_in_turn(alone, preferred, np.full(6, 10.0), 50, UNCLEAR, GOING_ON)
        assert found.tolist() == [0, 5, 1, 4, 3, 2]

    def test_the_best_of_both_orders_comes_first(self) -> None:
        alone, preferred = np.arange(12), np.array([2, 9, *range(2), *range(3, 9), 10, 11])
        found = fill_in_turn(alone, preferred, np.full(12, 10.0), 80, CLEAR, GOING_ON)
        assert found.tolist() == [0, 1, 2, 9, 3, 4, 5, 6, 7, 8, 10, 11]

    @each_row("weights", [UNCLEAR, np.zeros(3), np.zeros(0)])
    def test_where_no_topic_is_clear_all_is_filled_by_the_message(self, weights: Floats) -> None:
        alone, preferred = np.arange(6), np.arange(6)[::-1]
        found = fill_in_turn(alone, preferred, np.full(6, 10.0), 60, weights)
        assert found.tolist() == alone.tolist()

    def test_the_clearer_the_topic_the_more_it_fills(self) -> None:
        alone, preferred = np.arange(40), np.arange(40)[::-1]
        by_topic = []
        for likeliest in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
            weights = np.array([0, likeliest, 1 - likeliest])
            found = fill_in_turn(alone, preferred, np.full(40, 10.0), 200, weights)
            by_topic.append(int((found[:20] >= 20).sum()))
        assert by_topic == [0, 0, 3, 5, 7, 7]


FACT_QUESTIONS = """
When did we book the ferry to Bari?
Which bus did I take from the port to the old town?
How many people are in the choir by now?
Have I ever been to the dentist on Mill Road?
What was the name of the man who sold me the boat?
How many days passed between the move and the concert?
Which improvement happened first, the roof or the boiler?
Sum up what happened with the boiler so far, please.
Who was it that lent me the ladder last summer?
我们是什么时候订的去巴里的船票？
合唱团现在一共有多少人参加了？
我有没有去过磨坊路上的那家牙医诊所？
上次借给我梯子的那个人是谁来着？
总结一下锅炉的事情到目前为止怎么样了。
我上次在港口的市场里买了些什么？
奶奶住院的时候我们是哪两天去看她的？
她爸妈当年是怎么认识的？
Which illness does Mum have?
I have counted the planks. How many did we say the terrace needs?
木板我数过了。我们说露台一共需要多少块来着？
"""
NO_FACT_QUESTIONS = """
Okay, the paint is dry. On to the next wall then.
I'm back from the port, and the ticket office was closed.
Let's go with the second plan you made for the garden.
Same times as last week.
What did I score?
What can't she eat?
The doctor called. Please change the diet plan accordingly.
好的，油漆干了，那我们接着刷下一面墙吧。
我从港口回来了，售票处关着门。
就按你给花园做的第二个方案来吧。
时间跟上周一样。
医生来电话了，请把饮食计划改一下。
"""


class OneVector:
    """`Embedder` for which all texts are the same."""

    dimension = 1
    fingerprint = "one vector"

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 1), dtype=np.float32)


class TestGoingOn:
    @staticmethod
    def goes_on(message: str) -> bool:
        embedder = default_embedder()
        return goes_on(message, embedder.embed([message])[0], embedder)

    def test_a_question_for_a_fact_is_about_any_time(self) -> None:
        found = [self.goes_on(message) for message in FACT_QUESTIONS.strip().splitlines()]
        assert np.mean(found) < 0.1

    def test_most_other_messages_go_on_with_what_is_going_on(self) -> None:
        found = [self.goes_on(message) for message in NO_FACT_QUESTIONS.strip().splitlines()]
        assert np.mean(found) > 0.7

    def test_with_an_encoder_that_cannot_tell_them_apart_none_goes_on(self) -> None:
        embedder = OneVector()
        assert not goes_on("Okay!", embedder.embed(["Okay!"])[0], embedder)

    def test_without_a_vector_none_goes_on(self) -> None:
        embedder = default_embedder()
        assert not goes_on("...", np.zeros(embedder.dimension, dtype=np.float32), embedder)


@given(
    code=arrays(np.int64, st.integers(1, 40), elements=st.integers(0, 5)),
    seed=st.integers(0, 2**32 - 1),
    continues=st.floats(0, 1),
    budget=st.floats(0, 1e4),
)
def test_whatever_the_topics_every_message_is_ranked_once(
    code: np.ndarray[tuple[int], np.dtype[np.int64]], seed: int, continues: float, budget: float
) -> None:
    rng = np.random.default_rng(seed)
    means = unit_rows(rng.normal(size=(6, 8)).astype(np.float32))
    topics = group_by_topic(code, means)
    flat, costs = rng.normal(size=len(code)), rng.uniform(1, 500, size=len(code))
    found = weigh_topics(means[0], means[1:3], continues, flat, means.mean(axis=0), topics)
    assert found.sum() == pytest.approx(1 if code.any() else 0)
    assert (found >= 0).all()
    known = {int(topic) for topic in code}
    assert {topic for topic in range(6) if found[topic] > 0} <= known - {0}
    begins = rng.random(len(code)) < 0.3
    for manner in (ANY, GOING_ON):
        preferred = prefer_topics(flat, found, topics, begins, manner)
        order = fill_in_turn(
            _descending(flat), _descending(preferred), costs, budget, found, manner
        )
        assert sorted(order.tolist()) == list(range(len(code)))
        # What the message alone fills is among what the budget holds.
        alone = _descending(flat)
        first = alone[np.cumsum(costs[alone]) <= manner.by_message * budget]
        held = order[np.cumsum(costs[order]) <= budget * (1 + 1e-9)]
        assert set(first.tolist()) <= set(held.tolist())
    assert topics.newer.tolist() == [int((code[i + 1 :] == c).sum()) for i, c in enumerate(code)]


def _descending(scores: Floats) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.argsort(-scores, kind="stable")
