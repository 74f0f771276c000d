"""Replaying a log with the settings that it was made with, and with others."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from turn_logs import Day, log_of

from topicloom import ActivationPolicy, Receipt
from topicloom_lab.tuning.suggesting import Replay, replay
from topicloom_lab.tuning.turnlog import observe

POLICY = ActivationPolicy()
TOPICS = [f"t{n}" for n in range(1, 9)]


def tried(
    receipts: list[Receipt], policy: ActivationPolicy, in_force: ActivationPolicy = POLICY
) -> Replay:
    return replay(observe(receipts, in_force), policy)


days = st.builds(
    lambda tenths, begins: Day(
        {topic: tenth / 10 for topic, tenth in zip(TOPICS, tenths, strict=True)},
        split=tuple(TOPICS[begins : begins + 2]),
    ),
    st.binary(min_size=8, max_size=8).map(lambda drawn: [byte % 11 for byte in drawn]),
    st.integers(0, 16),
)
conversations = st.lists(days, min_size=1, max_size=16)
policies = st.builds(
    lambda base, step, share, floor, usual, more: ActivationPolicy(
        base=base, step=step, sleep_share=share, floor=floor, usual=usual, ceiling=usual + more
    ),
    st.floats(0.05, 0.6),
    st.floats(0, 0.1),
    st.floats(0.1, 1),
    st.integers(0, 2),
    st.integers(2, 6),
    st.integers(0, 4),
)


@given(conversations, policies)
def test_the_settings_in_force_give_the_log(made: list[Day], policy: ActivationPolicy) -> None:
    receipts = log_of(made, policy)
    found = tried(receipts, policy, policy)
    assert found.likeness == 1.0
    assert found.reads == sum(len(r.scores) for r in receipts)
    assert (found.missed, found.guessed) == (0, 0)


@given(conversations, policies, policies)
def test_other_settings_break_nothing(
    made: list[Day], policy: ActivationPolicy, other: ActivationPolicy
) -> None:
    receipts = log_of(made, policy)
    found = tried(receipts, other, policy)
    wanted = sum(len([n for n in r.quoted if n.topic in r.scores]) for r in receipts)
    assert 0 <= found.missed <= found.wanted == wanted
    assert 0 <= found.guessed <= found.reads
    assert 0 <= found.likeness <= 1


def test_a_higher_threshold_reads_less_and_may_miss() -> None:
    loud = Day({"t1": 0.9, "t2": 0.55, "t3": 0.1}, split=("t1", "t2", "t3"))
    receipts = log_of([loud, *[Day({"t1": 0.9, "t2": 0.55, "t3": 0.1})] * 10], POLICY)
    strict = POLICY.model_copy(update={"base": 0.9, "sleep_share": 1.0, "floor": 1})
    found = tried(receipts, strict)
    assert found.reads < sum(len(r.scores) for r in receipts)
    assert found.missed > 0


def test_a_topic_that_had_to_be_asked_for_is_a_miss_until_thresholds_let_it_stay() -> None:
    policy = POLICY.model_copy(update={"floor": 1})
    away = [Day({"t1": 0.9, "t2": 0.1})] * 6
    receipts = log_of(
        [
            Day({"t1": 0.9, "t2": 0.9}, split=("t1", "t2")),
            *away,
            Day({"t1": 0.1, "t2": 0.6}, asked_for=("t2",)),
        ],
        policy.model_copy(update={"base": 0.65}),
    )
    strict = policy.model_copy(update={"base": 0.65})
    assert [r.searches[0].found for r in receipts if r.searches] == [("t2",)]
    assert tried(receipts, strict, strict).missed == 1
    assert tried(receipts, policy.model_copy(update={"sleep_share": 0.01}), strict).missed == 0


def test_what_slept_in_the_log_is_guessed_and_said_to_be() -> None:
    policy = POLICY.model_copy(update={"floor": 1})
    receipts = log_of(
        [Day({"t1": 0.9, "t2": 0.6}, split=("t1", "t2")), *[Day({"t1": 0.9, "t2": 0.0})] * 12],
        policy,
    )
    assert "t2" not in receipts[-1].active
    kept = tried(receipts, policy.model_copy(update={"floor": 2}), policy)
    asleep = sum("t2" not in r.scores for r in receipts)
    assert kept.guessed == asleep
    assert kept.reads == 2 * len(receipts)


def test_waking_soon_after_sleep_is_counted() -> None:
    on, off = Day({"t1": 0.9, "t2": 0.9}), Day({"t1": 0.9, "t2": 0.0})
    policy = POLICY.model_copy(update={"floor": 1, "window": 1})
    begun = Day({"t1": 0.9, "t2": 0.9}, split=("t1", "t2"))
    receipts = log_of([begun, *[off, on] * 4], policy)
    assert tried(receipts, policy, policy).flaps == 4
    assert tried(receipts, policy.model_copy(update={"floor": 2}), policy).flaps == 0


@pytest.mark.parametrize("model", ["embedded", "m"])
def test_what_a_model_read_is_replayed_too(model: str) -> None:
    made = [
        Day({"t1": 0.9, "t2": 0.9}, split=("t1", "t2")),
        *[Day({"t1": 0.9, "t2": 0.0})] * 6,
        *[Day({"t1": 0.9, "t2": 0.8})] * 6,
    ]
    policy = POLICY.model_copy(update={"floor": 1})
    assert tried(log_of(made, policy, model=model), policy, policy).likeness == 1.0


def test_a_low_score_of_a_model_does_not_undo_what_the_index_woke() -> None:
    policy = POLICY.model_copy(update={"floor": 0, "window": 1})
    receipts = log_of(
        [
            Day({"t1": 0.9, "t2": 0.0}, split=("t1", "t2")),
            Day({"t1": 0.9, "t2": 0.3}),
        ],
        policy,
        model="m",
    )
    assert receipts[1].activated == ("t2",)
    unsure = receipts[1].model_copy(update={"scores": {"t1": 0.9, "t2": 0.2}})
    assert tried([receipts[0], unsure], policy, policy).reads == 4


def test_topics_that_were_divided_go_and_their_parts_come() -> None:
    first, second = log_of([Day({"t1": 0.9}, split=("t1",)), Day({"t1": 0.9})])
    parts = {"scores": {"t2": 0.9, "t3": 0.8}, "active": ("t2", "t3"), "quoted": ()}
    found = tried([first, second.model_copy(update=parts)], POLICY)
    assert (found.likeness, found.reads, found.guessed) == (1.0, 3, 0)


def test_a_log_may_begin_in_the_middle() -> None:
    made = [Day(dict.fromkeys(TOPICS[:4], 0.7), split=tuple(TOPICS[:4]))]
    made += [Day(dict.fromkeys(TOPICS[:4], 0.7))] * 20
    assert tried(log_of(made)[10:], POLICY).likeness == 1.0


def test_nothing_to_replay() -> None:
    assert tried([], POLICY).reads == 0
    assert tried(log_of([Day({"t1": 0.9})]), POLICY).wanted == 0
