"""Activation: the spec's thresholds, ranks, and floor, usual and ceiling."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError
from tables import each_row

from topicloom.state.activation import (
    SMALL,
    ActivationPolicy,
    activate_candidates,
    average_scores,
    find_ambiguous,
    plan_calls,
    update_activation,
)

POLICY = ActivationPolicy()


def topics(count: int, score: float, start: int = 1) -> dict[str, tuple[float, ...]]:
    return {f"t{n}": (score,) for n in range(start, start + count)}


@each_row(("admitted", "threshold"), [(0, 0.2), (3, 0.29), (10, 0.5), (20, 0.8)])
def test_the_spec_s_thresholds(admitted: int, threshold: float) -> None:
    assert POLICY.threshold(admitted) == pytest.approx(threshold)


def test_the_spec_s_defaults() -> None:
    assert (POLICY.window, POLICY.sleep_share) == (5, 0.5)
    assert (POLICY.floor, POLICY.usual, POLICY.ceiling) == (3, 10, 20)


@each_row(
    "bounds",
    [
        {"floor": 11},
        {"usual": 21},
        {"ceiling": 9},
        {"floor": -1},
        {"floor": 0, "usual": 0},
        {"window": 0},
    ],
)
def test_bounds_have_to_be_in_order(bounds: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        ActivationPolicy(**bounds)


def test_a_relaxed_policy_asks_for_a_share() -> None:
    relaxed = POLICY.scale_thresholds(0.5)
    assert [relaxed.threshold(n) for n in (0, 10)] == pytest.approx([0.1, 0.25])
    assert relaxed.ceiling == POLICY.ceiling


def test_the_average_weighs_the_newest_most() -> None:
    assert average_scores([]) == 0
    assert average_scores([0.4]) == 0.4
    assert average_scores([0.0, 0.0, 0.0, 0.0, 1.0]) == pytest.approx(5 / 15)
    assert average_scores([1.0, 0.0, 0.0, 0.0, 0.0]) == pytest.approx(1 / 15)


class TestAdmit:
    def test_down_the_ranking_each_needs_more(self) -> None:
        found = {"a": 0.9, "b": 0.5, "c": 0.27, "d": 0.28, "e": 0.2}
        result = activate_candidates({}, found, POLICY)
        # Ranks 0 to 4 ask for .20, .23, .26, .29, .32.
        assert result.activated == ("a", "b", "d")
        assert result.active == {"a": (0.9,), "b": (0.5,), "d": (0.28,)}

    def test_active_topics_count_in_the_ranking(self) -> None:
        result = activate_candidates(topics(9, 0.9), {"new": 0.46}, POLICY)
        assert result.activated == ()
        assert activate_candidates(topics(9, 0.9), {"new": 0.48}, POLICY).activated == ("new",)

    def test_a_better_one_stands_before_the_active(self) -> None:
        result = activate_candidates(topics(10, 0.3), {"new": 0.35}, POLICY)
        assert result.activated == ("new",)
        assert result.deactivated == ()
        assert len(result.active) == 11

    def test_waking_stops_at_the_usual_number(self) -> None:
        result = activate_candidates({}, {f"t{n:02}": 1.0 for n in range(30)}, POLICY)
        assert result.activated == tuple(f"t{n:02}" for n in range(10))

    def test_what_is_active_already_is_not_woken(self) -> None:
        result = activate_candidates({"t1": (0.4, 0.6)}, {"t1": 1.0}, POLICY)
        assert result.active == {"t1": (0.4, 0.6)}
        assert (result.activated, result.deactivated) == ((), ())

    def test_at_the_ceiling_the_last_sleep(self) -> None:
        active = topics(19, 0.5) | {"weak": (0.1,)}
        result = activate_candidates(active, {"new": 0.9}, POLICY)
        assert result.activated == ("new",)
        assert result.deactivated == ("weak",)
        assert len(result.active) == 20

    def test_an_active_one_that_is_meant_now_stays_for_all_its_average(self) -> None:
        policy = ActivationPolicy(floor=0, usual=2, ceiling=2)
        active = {"t1": (0.1, 0.1), "t2": (0.5, 0.5)}
        found = activate_candidates(active, {"t1": 0.9, "t3": 0.6}, policy)
        assert (found.activated, found.deactivated) == (("t3",), ("t2",))
        assert found.active["t1"] == (0.1, 0.1)

    def test_equal_scores_go_by_id(self) -> None:
        policy = ActivationPolicy(floor=0, usual=1, ceiling=1)
        assert activate_candidates({}, {"b": 0.5, "a": 0.5}, policy).activated == ("a",)


class TestSettle:
    def test_scores_are_folded_into_the_last_five(self) -> None:
        result = update_activation({"t1": (0.1, 0.2, 0.3, 0.4, 0.5)}, {"t1": 0.9}, POLICY)
        assert result.active == {"t1": (0.2, 0.3, 0.4, 0.5, 0.9)}

    def test_without_a_score_a_topic_keeps_its_standing(self) -> None:
        assert update_activation({"t1": (0.3,)}, {}, POLICY).active == {"t1": (0.3,)}

    def test_scores_of_others_wake_nobody(self) -> None:
        assert update_activation({"t1": (0.3,)}, {"t2": 0.9}, POLICY).active == {"t1": (0.3,)}

    def test_below_half_the_threshold_of_its_rank_it_sleeps(self) -> None:
        strong = topics(4, 0.9)
        # The fifth asks for half of .2 + .03 x 4.
        assert update_activation(strong | {"x": (0.159,)}, {}, POLICY).deactivated == ("x",)
        assert update_activation(strong | {"x": (0.161,)}, {}, POLICY).deactivated == ()

    def test_the_first_three_never_sleep(self) -> None:
        result = update_activation(topics(4, 0.0), {}, POLICY)
        assert list(result.active) == ["t1", "t2", "t3"]
        assert result.deactivated == ("t4",)

    def test_more_than_the_ceiling_never_stay(self) -> None:
        result = update_activation(topics(25, 1.0), {}, POLICY)
        assert len(result.active) == 20
        assert len(result.deactivated) == 5

    def test_a_topic_that_is_never_relevant_falls_asleep_by_and_by(self) -> None:
        active = dict(topics(3, 0.9))
        active["old"] = (0.9,)
        rounds = 0
        while "old" in active:
            scores = dict.fromkeys(active, 0.9) | {"old": 0.0}
            active = update_activation(active, scores, POLICY).active
            rounds += 1
        assert 2 <= rounds <= POLICY.window + 1


scores = st.floats(0, 1)
actives = st.dictionaries(
    st.integers(1, 60).map("t{}".format), st.lists(scores, min_size=1, max_size=5).map(tuple)
)
candidates = st.dictionaries(st.integers(1, 60).map("t{}".format), scores)


@st.composite
def policies(draw: st.DrawFn) -> ActivationPolicy:
    floor, usual, ceiling = sorted(draw(st.tuples(*[st.integers(1, 25)] * 3)))
    return ActivationPolicy(
        floor=floor,
        usual=usual,
        ceiling=ceiling,
        base=draw(st.floats(0, 0.5)),
        step=draw(st.floats(0, 0.1)),
    )


@given(actives, candidates, policies())
def test_never_above_the_ceiling(
    active: dict[str, tuple[float, ...]], found: dict[str, float], policy: ActivationPolicy
) -> None:
    admitted = activate_candidates(active, found, policy)
    assert len(admitted.active) <= policy.ceiling
    assert len(admitted.activated) <= policy.usual
    assert set(admitted.activated) == set(admitted.active) - set(active)
    assert set(admitted.deactivated) == set(active) - set(admitted.active)
    assert set(admitted.active) <= set(active) | set(found)
    settled = update_activation(admitted.active, found, policy)
    assert min(policy.floor, len(admitted.active)) <= len(settled.active) <= policy.ceiling
    assert set(settled.deactivated) == set(admitted.active) - set(settled.active)
    assert all(len(s) <= policy.window for s in settled.active.values() if len(s) > 1)


@given(actives, candidates, st.data())
def test_more_relevance_never_does_harm(
    active: dict[str, tuple[float, ...]], found: dict[str, float], data: st.DataObject
) -> None:
    """A candidate that wakes still wakes if it alone is found more relevant."""
    woken = activate_candidates(active, found, POLICY).activated
    for topic in woken:
        better = data.draw(st.floats(found[topic], 1))
        assert topic in activate_candidates(active, found | {topic: better}, POLICY).activated


@given(actives, candidates)
def test_who_wakes_is_at_least_as_relevant_as_who_does_not(
    active: dict[str, tuple[float, ...]], found: dict[str, float]
) -> None:
    result = activate_candidates(active, found, POLICY)
    asleep = {t: s for t, s in found.items() if t not in active}
    missed = [s for t, s in asleep.items() if t not in result.activated]
    if result.activated and missed:
        assert min(asleep[t] for t in result.activated) >= max(missed)


@given(actives, candidates)
def test_settling_the_stronger_keeps_them(
    active: dict[str, tuple[float, ...]], found: dict[str, float]
) -> None:
    result = update_activation(active, found, POLICY)
    if result.deactivated and result.active:
        gone = {t: (*active[t], found[t]) if t in found else active[t] for t in result.deactivated}
        best_gone = max(average_scores(s[-POLICY.window :]) for s in gone.values())
        assert min(average_scores(s) for s in result.active.values()) >= best_gone


@each_row(
    ("relevance", "asked"),
    [
        ({}, ()),
        ({"t1": 0.5}, ()),
        ({"t1": 0.7, "t2": 0.69}, ()),
        ({"t1": 0.5, "t2": 0.55, "t3": 0.3}, ("t2", "t1")),
        ({f"t{n}": 0.5 for n in range(6)}, ("t0", "t1", "t2", "t3")),
    ],
)
def test_the_user_is_asked_about_several_alike(
    relevance: dict[str, float], asked: tuple[str, ...]
) -> None:
    assert find_ambiguous(relevance, ActivationPolicy()) == asked


@given(st.dictionaries(st.integers(1, 60).map("t{}".format), st.integers(0, 900)))
def test_large_topics_are_read_alone_and_small_ones_together(tokens: dict[str, int]) -> None:
    calls = plan_calls(list(tokens), tokens, room=2_000)
    assert sorted(t for call in calls for t in call) == sorted(tokens)
    assert all(len(call) == 1 for call in calls if tokens[call[0]] > SMALL)
    assert all(sum(tokens[t] for t in call) <= 2_000 for call in calls)
    together = [call for call in calls if tokens[call[0]] <= SMALL]
    assert len(together) <= 1 + sum(tokens[t] for call in together for t in call) // 1_600
