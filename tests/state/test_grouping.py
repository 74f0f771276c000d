"""Runs are grouped by how likely they belong together, all at once."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, strategies as st

from topicloom.state.grouping import LOOSE, LOOSE_ROUNDS, Odds, link_groups, regroup


def odds_of(matters: str, weak: float = 0.0) -> Odds:
    """Log odds of runs, one a letter: 2 within a matter and -2 between them."""
    same = np.array([[a == b for b in matters] for a in matters])
    return np.where(same, 2.0 - weak, -2.0)


def parts(groups: list[int]) -> set[frozenset[int]]:
    """The runs of each group."""
    return {frozenset(i for i, g in enumerate(groups) if g == group) for group in groups}


def test_what_belongs_together_is_joined_whatever_lies_between() -> None:
    groups = link_groups(odds_of("abacab"), [1] * 6, [False] * 6)
    assert parts(groups) == {frozenset({0, 2, 4}), frozenset({1, 5}), frozenset({3})}


def test_a_group_is_as_close_as_the_mean_of_its_pairs() -> None:
    # 2 is close to 0 and far from 1: alone it would go to 0, to both together it does not.
    odds = np.array([[0, 3.0, 1.0], [3.0, 0, -2.0], [1.0, -2.0, 0]])
    assert parts(link_groups(odds, [1] * 3, [False] * 3)) == {frozenset({0, 1}), frozenset({2})}


def test_topics_that_are_kept_never_join_and_give_a_group_its_number() -> None:
    sums = odds_of("aaa")
    assert link_groups(sums, [1, 1, 1], [False, True, True]) in ([1, 1, 2], [2, 1, 2])


def test_nothing_joins_what_is_as_likely_apart() -> None:
    assert link_groups(np.zeros((3, 3)), [1] * 3, [False] * 3) == [0, 1, 2]
    assert link_groups(np.zeros((1, 1)), [1], [False]) == [0]
    assert link_groups(np.zeros((0, 0)), [], []) == []


def test_a_run_that_was_filed_wrong_moves() -> None:
    found = regroup(odds_of("aaabbba"), [0, 0, 0, 1, 1, 1, 1], [3] * 7)
    assert found.groups == (0, 0, 0, 1, 1, 1, 0)
    assert not found.merged


def test_topics_of_one_matter_merge_into_the_larger_one_if_it_has_room() -> None:
    homes, rounds = [0, 1, 1, 2], [3] * 4
    found = regroup(odds_of("aaab"), homes, rounds)
    assert found.merged == {0: 1}
    assert found.groups == (1, 1, 1, 2)
    full = regroup(odds_of("aaab"), homes, rounds, tokens=[60, 60, 60], limit=100)
    assert not full.merged


def test_what_a_person_settled_gains_and_never_loses() -> None:
    found = regroup(odds_of("abbb"), [0, 0, 1, 1], [3] * 4, settled=frozenset({0}))
    assert found.groups == (0, 0, 1, 1)
    assert not found.merged
    gained = regroup(odds_of("aaabb"), [0, 0, 1, 1, 1], [3] * 5, settled=frozenset({0}))
    assert gained.groups == (0, 0, 0, 1, 1)


def test_loose_ends_gather_into_a_topic_once_they_are_enough() -> None:
    few = regroup(odds_of("ab"), [LOOSE, LOOSE], [1, 1])
    assert few.groups == (LOOSE, LOOSE)
    enough = regroup(odds_of("aba" + "a"), [LOOSE] * 4, [1] * 4)
    assert Counter(enough.groups)[LOOSE] == 1
    assert len(set(enough.groups)) == 2
    joined = regroup(odds_of("aab"), [0, LOOSE, LOOSE], [5, 1, 1])
    assert joined.groups == (0, 0, LOOSE)


def test_there_are_no_more_changes_than_were_asked_for() -> None:
    homes = [0, 1, 2, 3, 4]
    assert len(regroup(odds_of("aaaaa"), homes, [3] * 5, most=2).merged) == 2
    assert regroup(odds_of("aaaaa"), homes, [3] * 5, most=0).groups == tuple(homes)


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(1, 5)), min_size=1, max_size=9))
def test_every_run_has_a_home_and_no_new_topic_is_small(filed: list[tuple[int, int]]) -> None:
    homes = [home for home, _ in filed]
    rounds = [size for _, size in filed]
    rng = np.random.default_rng(len(filed) + sum(rounds))
    odds = rng.normal(size=(len(filed), len(filed)))
    found = regroup(odds + odds.T, homes, rounds, most=100)
    assert len(found.groups) == len(filed)
    held = Counter[int]()
    for home, size in zip(found.groups, rounds, strict=True):
        held[home] += size
    fresh = [home for home in held if home > max(homes)]
    assert all(held[home] >= LOOSE_ROUNDS for home in fresh)
