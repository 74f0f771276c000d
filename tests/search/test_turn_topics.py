"""Which topics a turn is in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from topicloom.search.about import prefer_recent_topics
from topicloom.search.embedder import unit_rows
from topicloom.search.turn_topics import weigh_topics

RNG = np.random.default_rng(7)
KITCHEN, GARDEN, ARCHIVED = 1, 2, 3
DIRECTIONS = unit_rows(RNG.normal(size=(4, 16)).astype(np.float32))
CODE = np.array([KITCHEN, KITCHEN, GARDEN, GARDEN, KITCHEN, ARCHIVED, GARDEN])
MEAN = DIRECTIONS[CODE].mean(axis=0)
TOPICS = DIRECTIONS, MEAN, CODE
"""Three topics of seven messages; the third one is archived."""
NOTHING_FITS = np.zeros(len(CODE))
NONE_BEGINS = np.zeros(len(CODE), dtype=np.bool_)


class TestTopicsOfATurn:
    def test_a_message_near_a_topic_is_in_it(self) -> None:
        found = weigh_topics(DIRECTIONS[GARDEN], DIRECTIONS[:0], 0.0, NOTHING_FITS, *TOPICS)
        assert found.argmax() == GARDEN
        assert found.sum() == pytest.approx(1)

    def test_a_message_that_says_little_is_in_the_topic_that_it_goes_on_with(self) -> None:
        vague = unit_rows((DIRECTIONS[KITCHEN] + DIRECTIONS[GARDEN])[None, :])[0]
        before = DIRECTIONS[[KITCHEN, KITCHEN]]
        alone = weigh_topics(vague, before, 0.0, NOTHING_FITS, *TOPICS, [ARCHIVED])
        going_on = weigh_topics(vague, before, 0.9, NOTHING_FITS, *TOPICS, [ARCHIVED])
        assert going_on[KITCHEN] > alone[KITCHEN]
        assert going_on.argmax() == KITCHEN

    def test_messages_that_fit_speak_for_their_topic(self) -> None:
        fits = np.where(CODE == GARDEN, 3.0, 0.0)
        vague = unit_rows((DIRECTIONS[KITCHEN] + DIRECTIONS[GARDEN])[None, :])[0]
        found = weigh_topics(vague, DIRECTIONS[:0], 0.0, fits, *TOPICS, [ARCHIVED])
        assert found.argmax() == GARDEN

    def test_a_turn_is_in_no_archived_topic(self) -> None:
        fits = np.where(CODE == ARCHIVED, 9.0, 0.0)
        found = weigh_topics(DIRECTIONS[ARCHIVED], DIRECTIONS[:0], 0.0, fits, *TOPICS, [ARCHIVED])
        assert found[ARCHIVED] == 0
        assert found[0] == 0

    def test_without_topics_there_is_none(self) -> None:
        none = DIRECTIONS[:1], MEAN, np.zeros(3, dtype=int)
        found = weigh_topics(DIRECTIONS[0], DIRECTIONS[:0], 0.0, np.zeros(3), *none)
        assert found.tolist() == [0.0]


class TestReturns:
    BOTH = np.array([0.0, 0.5, 0.5, 0.0])

    def test_a_turn_is_less_likely_in_a_topic_the_longer_ago_it_was_spoken_of(self) -> None:
        opens = np.array([True, False, True, False, True, False, True])
        found = prefer_recent_topics(self.BOTH, CODE, opens)
        assert found[GARDEN] > found[KITCHEN] > 0  # of the garden the newest stretch is
        assert found.sum() == pytest.approx(1)

    def test_messages_of_the_same_stretch_are_no_time(self) -> None:
        found = prefer_recent_topics(self.BOTH, CODE, NONE_BEGINS)
        assert found == pytest.approx(self.BOTH)

    def test_what_is_said_tells_more(self) -> None:
        weights = np.array([0.0, 0.8, 0.2, 0.0])
        found = prefer_recent_topics(weights, CODE, ~NONE_BEGINS)
        assert found.argmax() == KITCHEN

    def test_without_topics_there_is_none(self) -> None:
        assert not prefer_recent_topics(np.zeros(4), CODE, NONE_BEGINS).any()


@given(
    code=arrays(np.int64, st.integers(1, 40), elements=st.integers(0, 5)),
    seed=st.integers(0, 2**32 - 1),
    continues=st.floats(0, 1),
)
def test_whatever_the_topics_their_probabilities_add_up(
    code: np.ndarray[tuple[int], np.dtype[np.int64]], seed: int, continues: float
) -> None:
    rng = np.random.default_rng(seed)
    means = unit_rows(rng.normal(size=(6, 8)).astype(np.float32))
    flat = rng.normal(size=len(code))
    topics = means, means.mean(axis=0), code
    found = weigh_topics(means[0], means[1:3], continues, flat, *topics)
    assert found.sum() == pytest.approx(1 if code.any() else 0)
    assert (found >= 0).all()
    known = {int(topic) for topic in code}
    assert {topic for topic in range(6) if found[topic] > 0} <= known - {0}
