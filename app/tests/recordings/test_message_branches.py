"""Branches of a conversation: the newest is shown, and no message is lost whatever is missing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from topicloom_app.recordings.branches import find_branches
from topicloom_app.recordings.formats.base import find_timed_branches

NAMES = st.sampled_from("abcdefgh")
PARENTS = st.dictionaries(NAMES, st.none() | st.sampled_from("abcdefghXY"))
TIMES = st.dictionaries(NAMES, st.floats(0, 9))


@given(PARENTS, st.none() | NAMES, TIMES)
def test_each_message_is_in_one_branch(
    parents: dict[str, str | None], leaf: str | None, times: dict[str, float]
) -> None:
    found = find_branches(parents, leaf, times)
    ids = [*found.shown, *found.left_out]
    assert sorted(ids) == sorted(parents)
    assert all(found.others)
    if leaf in parents:
        assert leaf in found.shown
    for branch in (found.shown, *found.others):
        for before, after in pairwise(branch):
            assert parents[after] in (before, None) or parents[after] not in parents


def test_without_a_leaf_the_newest_is_shown() -> None:
    parents = {"q": None, "a": "q", "b": "q", "c": "a"}
    assert find_branches(parents).shown == ["q", "a", "c"]
    assert find_branches(parents, None, {"q": 1, "a": 2, "b": 9, "c": 3}).shown == ["q", "b"]
    assert find_branches(parents, "b").others == [["a", "c"]]


def test_what_follows_the_message_that_was_shown_is_shown_too() -> None:
    parents = {"q": None, "a": "q", "q2": "a", "a2": "q2", "old": "a"}
    assert find_branches(parents, "a", {"old": 1, "q2": 2}).shown == ["q", "a", "q2", "a2"]


def test_those_that_follow_the_same_lost_message_are_branches() -> None:
    """So Claude writes the first ones, whose parent is in no conversation."""
    found = find_branches({"u": "R", "a": "u", "u2": "R", "a2": "u2"})
    assert (found.shown, found.others) == (["u2", "a2"], [["u", "a"]])


def test_a_gap_is_no_branch() -> None:
    parents = {"root": None, "q": "root", "a": "q", "q3": "lost", "a3": "q3"}
    for times in ({}, {"q": 1.0, "a": 2.0, "q3": 5.0, "a3": 6.0}):
        assert find_branches(parents, "a3", times).shown == list(parents)
        assert find_branches(parents, None, times).others == []


def test_what_follows_no_id_goes_on_behind_the_gap() -> None:
    for damaged in ([None], {"id": "q"}, 5, True):
        parents = {"q": None, "a": "q", "b": damaged, "c": "b"}
        found = find_timed_branches(parents, None, {})
        assert (found.shown, found.others) == (["q", "a", "b", "c"], [])


@pytest.mark.slow
def test_a_long_chain_takes_no_long_time() -> None:
    parents: dict[str, str | None] = {str(n): str(n - 1) if n else None for n in range(100_000)}
    assert len(find_branches(parents, None, {"0": 1.0}).shown) == 100_000
