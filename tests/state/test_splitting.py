"""Splitting: how much moves, and where whole rounds go."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom.state.rounds import Round, group_rounds
from topicloom.state.splitting import (
    Assignment,
    Portion,
    PromptParts,
    SplitPlan,
    SplitPolicy,
    decide_split,
    explain_split,
    follow_segments,
    group_assignments,
    keep_newest,
    merge_assignments,
    plan_split,
)
from topicloom.state.stored_message import StoredMessage

POLICY = SplitPolicy(target=0.6, unsplit=0.25)
TOPICS = {"t1": None, "t2": None}


def make_blocks(count: int, replies: int = 1, start: int = 1) -> list[Round]:
    size = replies + 1
    return group_rounds(
        StoredMessage(
            seq=start + n, role="user" if n % size == 0 else "assistant", text=f"x{n}", time=""
        )
        for n in range(count * size)
    )


def to(topic: str, *messages: str) -> list[Assignment]:
    """Assignments to a topic that exists, or to a new one by name."""
    if topic in TOPICS:
        return [Assignment(message=m, topic=topic) for m in messages]
    return [Assignment(message=m, name=topic) for m in messages]


NOW = SplitPlan(tail=1, view=1)


class TestPlan:
    def test_what_is_in_view_comes_to_the_target_and_most_of_it_moves(self) -> None:
        # 60 % of 1,000 tokens are six rounds of 100, and 25 % two.
        plan = plan_split(NOW, make_blocks(20), [100] * 20, 1_000, POLICY)
        assert plan == SplitPlan(tail=18 * 2 + 1, view=14 * 2 + 1)

    def test_nothing_moves_as_long_as_what_leaves_the_view_is_in_a_topic(self) -> None:
        now = SplitPlan(tail=14 * 2 + 1, view=1)
        plan = plan_split(now, make_blocks(20), [100] * 20, 1_000, POLICY)
        assert plan == SplitPlan(tail=14 * 2 + 1, view=14 * 2 + 1)
        early = SplitPlan(tail=13 * 2 + 1, view=1)
        assert plan_split(early, make_blocks(20), [100] * 20, 1_000, POLICY).tail == 18 * 2 + 1

    def test_long_replies_do_not_fill_more_than_the_target(self) -> None:
        plan = plan_split(NOW, make_blocks(10), [190] * 10, 1_000, POLICY)
        assert plan == SplitPlan(tail=9 * 2 + 1, view=7 * 2 + 1)

    def test_what_fits_stays(self) -> None:
        assert plan_split(NOW, make_blocks(40), [1] * 40, 1_000, POLICY) == NOW
        later = SplitPlan(tail=5, view=1)
        assert plan_split(later, make_blocks(40), [1] * 40, 1_000, POLICY) == later

    def test_messages_that_were_removed_before_all_that_is_in_view_move_nothing(self) -> None:
        assert plan_split(NOW, make_blocks(3, start=3), [10] * 3, 1_000, POLICY) == NOW

    def test_the_newest_block_stays_whatever_its_size(self) -> None:
        plan = plan_split(NOW, make_blocks(3), [10, 10, 9_999], 100, POLICY)
        assert (plan.tail, plan.view) == (5, 5)

    def test_one_block_cannot_be_split(self) -> None:
        now = SplitPlan(tail=7, view=7)
        assert plan_split(now, make_blocks(1, start=7), [9_999], 100, POLICY) == now

    def test_no_more_stays_unsplit_than_in_view(self) -> None:
        policy = SplitPolicy(target=0.3, unsplit=0.9)
        plan = plan_split(NOW, make_blocks(20), [100] * 20, 1_000, policy)
        assert (plan.tail, plan.view) == (17 * 2 + 1, 17 * 2 + 1)


@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=40),
    room=st.integers(1, 3_000),
    replies=st.integers(0, 3),
    split=st.integers(0, 40),
)
def test_every_plan_comes_to_the_target(
    sizes: list[int], room: int, replies: int, split: int
) -> None:
    rounds = make_blocks(len(sizes), replies)
    firsts = [b.first for b in rounds]
    now = SplitPlan(tail=firsts[min(split, len(rounds) - 1)], view=1)
    plan = plan_split(now, rounds, sizes, room, POLICY)
    tail, view = firsts.index(plan.tail), firsts.index(plan.view)
    assert view <= tail
    assert plan.tail >= now.tail
    assert sum(sizes[view:]) <= POLICY.target * room or view == len(rounds) - 1
    if view > 0:
        assert sum(sizes[view - 1 :]) > POLICY.target * room, "more leaves the view than has to"
    if plan.tail == now.tail:
        return
    assert plan.view > now.tail, "rounds moved that did not have to"
    assert sum(sizes[tail:]) <= POLICY.unsplit * room or tail == len(rounds) - 1
    assert sum(sizes[tail - 1 :]) > POLICY.unsplit * room, "more moves than is wanted"


@pytest.mark.slow
@given(
    round_tokens=st.integers(20, 3_000),
    note_tokens=st.integers(0, 1_500),
    fixed=st.integers(0, 30_000),
    window=st.sampled_from([8_000, 32_000, 128_000]),
    policy=st.sampled_from([POLICY, SplitPolicy(), SplitPolicy(trigger=0.5, target=0.3)]),
)
def test_in_a_steady_conversation_splits_are_far_apart(
    round_tokens: int, note_tokens: int, fixed: int, window: int, policy: SplitPolicy
) -> None:
    """Between two splits lie as many rounds as fill the target, less what the first left unsplit.

    Room is made no sooner than what is free is full, unless the fixed parts alone fill the window.
    """
    room = policy.trigger * window - fixed
    target = policy.target * max(room, window // 10)
    left = max(min(policy.unsplit * max(room, window // 10), target), round_tokens)
    apart_splits = (target - left) / round_tokens
    apart_any = (room - max(target, round_tokens)) / (round_tokens + note_tokens)
    now, notes, splits, made = NOW, 0, list[int](), list[int]()
    turns = min(400, 4 * int(room / round_tokens + 1) + 40)
    for turn in range(1, turns + 1):
        shown = turn - now.view // 2
        expected = fixed + notes + round_tokens * shown
        plan = decide_split(
            now,
            partial(make_blocks, shown, start=now.view),
            lambda message: round_tokens if message.role == "user" else 0,
            expected=expected,
            room=room,
            window=window,
            policy=policy,
        )
        if plan is not None:
            made.append(turn)
            splits += [turn] if plan.tail > now.tail else []
            now, notes = plan, 0
        notes += note_tokens
    assert all(b - a > apart_splits for a, b in pairwise(splits))
    assert all(b - a > apart_any for a, b in pairwise(made))


class TestDecide:
    NOW = SplitPlan(tail=3, view=1)

    def decided(self, expected: float, size: int, room: float = 1_000) -> SplitPlan | None:
        return decide_split(
            self.NOW,
            lambda: make_blocks(20),
            lambda stored: size,
            expected=expected,
            room=room,
            window=2_000,
            policy=POLICY,
        )

    def test_nothing_moves_up_to_the_trigger(self) -> None:
        def never() -> list[Round]:
            raise AssertionError("the blocks are not needed")

        assert (
            decide_split(
                self.NOW,
                never,
                lambda stored: 1,
                expected=1_400,
                room=1_000,
                window=2_000,
                policy=POLICY,
            )
            is None
        )

    def test_past_it_the_tail_is_cut(self) -> None:
        plan = self.decided(1_401, 50)
        assert plan == plan_split(self.NOW, make_blocks(20), [100] * 20, 1_000, POLICY)

    def test_where_notes_alone_fill_the_window_they_are_dropped(self) -> None:
        assert self.decided(1_401, 15) == self.NOW

    def test_there_is_always_some_room(self) -> None:
        plan = self.decided(1_401, 10, room=-500)
        assert plan is not None
        # Of a tenth of the window, 60 % are six rounds of 20 and 25 % two.
        assert plan == SplitPlan(tail=18 * 2 + 1, view=14 * 2 + 1)


class TestKeep:
    def test_whole_rounds_stay_in_view(self) -> None:
        rounds = make_blocks(10)
        shown = [r for b in rounds for r in b.messages if r.seq >= 21 - 4]
        assert keep_newest(make_blocks(11), shown, 21) == SplitPlan(tail=21, view=17)

    def test_not_half_of_one(self) -> None:
        shown = [r for b in make_blocks(11) for r in b.messages if r.seq >= 21 - 3]
        assert keep_newest(make_blocks(11), shown, 21) == SplitPlan(tail=21, view=19)

    def test_a_late_reply_belongs_to_the_round_before(self) -> None:
        assert keep_newest(make_blocks(10), [], 20) == SplitPlan(tail=19, view=19)

    def test_without_a_conversation(self) -> None:
        assert keep_newest([], [], 1) == SplitPlan(tail=1, view=1)


class TestGather:
    def test_the_three_outcomes(self) -> None:
        rounds = make_blocks(3)
        portions, left = group_assignments(
            rounds,
            [*to("t1", "m1", "m2"), *to("Tea", "m3", "m4"), *to("t2", "m5", "m6")],
            TOPICS,
        )
        assert [(p.topic, p.name) for p in portions] == [("t1", ""), (None, "Tea"), ("t2", "")]
        assert [p.rounds for p in portions] == [(rounds[0],), (rounds[1],), (rounds[2],)]
        assert left == []

    def test_what_is_not_covered_is_said(self) -> None:
        rounds = make_blocks(3)
        portions, left = group_assignments(rounds, to("t1", "m3"), TOPICS)
        assert [p.rounds for p in portions] == [(rounds[1],)]
        assert left == [rounds[0], rounds[2]]

    def test_no_answer_covers_nothing(self) -> None:
        rounds = make_blocks(2)
        assert group_assignments(rounds, [], TOPICS) == ([], rounds)
        assert group_assignments([], to("t1", "m1"), TOPICS) == ([], [])

    def test_a_block_follows_most_of_its_messages(self) -> None:
        rounds = make_blocks(1, replies=2)
        portions, _ = group_assignments(rounds, [*to("t1", "m1"), *to("t2", "m2", "m3")], TOPICS)
        assert [p.topic for p in portions] == ["t2"]

    def test_on_a_tie_it_follows_its_first(self) -> None:
        for order in (["m1", "m2"], ["m2", "m1"]):
            said = {"m1": to("t2", "m1"), "m2": to("t1", "m2")}
            answer = [a for m in order for a in said[m]]
            portions, _ = group_assignments(make_blocks(1), answer, TOPICS)
            assert [p.topic for p in portions] == ["t2"]

    @each_row(
        "bad",
        [
            Assignment(message="m99", topic="t1"),
            Assignment(message="42", topic="t1"),
            Assignment(message="m1", topic="t99"),
            Assignment(message="m1", topic="T1"),
            Assignment(message="m1"),
            Assignment(message="m1", name="  "),
            Assignment(message="", topic="", name=""),
        ],
    )
    def test_unknown_ids_do_not_count(self, bad: Assignment) -> None:
        (round_,) = rounds = make_blocks(1)
        assert group_assignments(rounds, [bad], TOPICS) == ([], [round_])

    def test_an_unknown_topic_does_not_undo_a_good_assignment(self) -> None:
        good, bad = Assignment(message="m1", topic="t1"), Assignment(message="m1", topic="t99")
        for answer in ([good, bad], [bad, good]):
            portions, left = group_assignments(make_blocks(1), answer, TOPICS)
            assert [p.topic for p in portions] == ["t1"]
            assert left == []

    def test_of_two_assignments_of_a_message_the_last_counts(self) -> None:
        portions, _ = group_assignments(make_blocks(1), [*to("t1", "m1"), *to("t2", "m1")], TOPICS)
        assert [p.topic for p in portions] == ["t2"]

    def test_equal_names_are_one_topic_with_the_first_brief(self) -> None:
        rounds = make_blocks(2)
        answer = [
            Assignment(message="m1", name="Tea"),
            Assignment(message="m3", name="Tea", brief="All about tea."),
            Assignment(message="m4", name="Tea", brief="Other words."),
        ]
        (portion,), _ = group_assignments(rounds, answer, TOPICS)
        assert portion.rounds == tuple(rounds)
        assert portion.brief == "All about tea."

    def test_an_existing_topic_is_one_whatever_it_is_called(self) -> None:
        answer = [
            Assignment(message="m1", topic="t1", name="Tea"),
            Assignment(message="m3", topic="t1", name="Green tea"),
        ]
        (portion,), _ = group_assignments(make_blocks(2), answer, TOPICS)
        assert (portion.topic, portion.name) == ("t1", "")


class TestSegments:
    def test_what_is_left_out_goes_on_with_what_is_before_it(self) -> None:
        a, b, c, d, e = make_blocks(5)
        tea = Portion(None, "Tea", "", (a,))
        odds = {b.first: 1.0, c.first: 2.0, d.first: -1.0, e.first: 1.0}
        portions, rest = follow_segments([tea], [b, c, d, e], odds)
        assert portions == [replace(tea, rounds=(a, b, c))]
        assert rest == [d, e]


class TestReferences:
    def test_a_block_may_belong_to_other_topics_too(self) -> None:
        answer = [
            Assignment(message="m1", topic="t1", also=("t2",)),
            Assignment(message="m2", topic="t1", also=("t2", "Tea", "t1")),
            Assignment(message="m3", name="Tea", also=("t1",)),
        ]
        portions, _ = group_assignments(make_blocks(2), answer, TOPICS)
        assert [dict(p.also) for p in portions] == [{1: ("t2", "Tea")}, {3: ("t1",)}]

    def test_only_what_the_block_follows_counts(self) -> None:
        answer = [
            *to("t1", "m1", "m2"),
            Assignment(message="m3", topic="t2", also=("t1",)),
        ]
        (portion,), _ = group_assignments(make_blocks(1, replies=2), answer, TOPICS)
        assert (portion.topic, portion.also) == ("t1", {})

    def test_joined_portions_keep_them(self) -> None:
        a, b = make_blocks(2)
        first = Portion("t1", "", "", (b,), {3: ("t2",)})
        assert merge_assignments([first, Portion("t1", "", "", (a,), {1: ("t3",)})]) == [
            Portion("t1", "", "", (a, b), {1: ("t3",), 3: ("t2",)})
        ]


def test_joined_portions_are_in_conversation_order() -> None:
    a, b, c, d = make_blocks(4)
    portions = [
        Portion(None, "Tea", "", (a, d)),
        Portion("t1", "", "", (b,)),
        Portion(None, "Tea", "Later.", (c,)),
    ]
    assert merge_assignments(portions) == [
        Portion(None, "Tea", "", (a, c, d)),
        Portion("t1", "", "", (b,)),
    ]


assignments = st.builds(
    Assignment,
    message=st.sampled_from(["m1", "m2", "m3", "m4", "m5", "m6", "m7", "x"]),
    topic=st.sampled_from([None, "", "t1", "t2", "t9"]),
    name=st.sampled_from(["", " ", "Tea", "Rain"]),
    brief=st.sampled_from(["", "words"]),
)


@given(st.lists(assignments, max_size=12))
def test_every_block_is_in_one_place(answer: list[Assignment]) -> None:
    rounds = make_blocks(3)
    portions, left = group_assignments(rounds, answer, TOPICS)
    placed = [b.first for p in portions for b in p.rounds] + [b.first for b in left]
    assert sorted(placed) == [b.first for b in rounds]
    assert len({(p.topic, p.name) for p in portions}) == len(portions)
    assert all(p.topic in TOPICS or p.name.strip() for p in portions)
    for portion in portions:
        order = [b.first for b in portion.rounds]
        assert order == sorted(order)


class TestExplanation:
    """A receipt says what filled the window, and what was done."""

    PARTS = PromptParts(fixed=900, notes=2_100, messages=19_450)

    def explained(self, now: SplitPlan, plan: SplitPlan) -> str:
        return explain_split(now, plan, make_blocks(10), self.PARTS, 32_000, SplitPolicy())

    def test_what_filled_the_window_and_what_moved(self) -> None:
        assert self.explained(SplitPlan(tail=1, view=1), SplitPlan(tail=17, view=11)) == (
            "room was made: the prompt was expected to have 22,450 tokens, more than 70% of 32,000"
            " (instructions, tools and expected recall 900, recall notes 2,100, messages in view"
            " 19,450); 8 rounds moved into topics, 5 rounds left the view"
        )

    def test_a_split_that_moves_nothing_says_what_it_dropped(self) -> None:
        now = SplitPlan(tail=1, view=1)
        assert self.explained(now, now).endswith("; recall notes were dropped")

    def test_one_round_is_said_in_the_singular(self) -> None:
        said = self.explained(SplitPlan(tail=3, view=1), SplitPlan(tail=5, view=3))
        assert said.endswith("; 1 round moved into topics, 1 round left the view")

    def test_nothing_may_be_in_view(self) -> None:
        assert plan_split(NOW, [], [], 1_000, POLICY) == NOW
        said = explain_split(NOW, NOW, [], self.PARTS, 32_000, SplitPolicy())
        assert said.endswith("; recall notes were dropped")
