"""Ranges: each message that was split is in exactly one topic, whatever rows there are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from topicloom.state.topic_ranges import (
    TopicRanges,
    list_numbers,
    make_ranges,
    write_rows,
)

Row = dict[str, Any]


def put(topic: str, first: int, last: int) -> Row:
    (row,) = write_rows(topic, [(first, last)], str)
    return row


@st.composite
def some_rows(draw: st.DrawFn) -> list[Row]:
    """Rows as a session writes them: new messages behind the others, or a move of old ones."""
    rows, last = list[Row](), 0
    for topic, old, size in draw(
        st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(1, 5)), max_size=25)
    ):
        first = draw(st.integers(1, last)) if old and last else last + 1
        rows.append(put(f"t{topic}", first, first + size - 1))
        last = max(last, first + size - 1)
    return rows


def owners_by_hand(rows: list[Row]) -> dict[int, str]:
    return {n: row["topic"] for row in rows for n in range(row["first"], row["last"] + 1)}


@given(some_rows())
def test_each_message_is_in_the_topic_that_the_last_row_says(rows: list[Row]) -> None:
    ranges, wanted = TopicRanges.fold(rows), owners_by_hand(rows)
    assert {n: ranges.topic_of(n) for n in range(1, ranges.last + 1)} == wanted
    assert ranges.last == max(wanted, default=0)
    assert ranges.topic_of(0) is ranges.topic_of(ranges.last + 1) is None
    # Exactly once: all topics together have each number, and none has it twice.
    assert sorted(n for t in ranges.held for n in ranges.numbers(t)) == sorted(wanted)


@given(some_rows())
def test_the_ranges_of_a_topic_are_as_few_as_can_be(rows: list[Row]) -> None:
    ranges = TopicRanges.fold(rows)
    for topic, held in ranges.held.items():
        assert list(held) == make_ranges(ranges.numbers(topic))
    assert ranges.group(range(1, ranges.last + 1)) == {t: ranges.numbers(t) for t in ranges.held}


@given(some_rows(), st.integers(0, 25))
def test_folding_in_two_goes_is_folding_at_once(rows: list[Row], place: int) -> None:
    base = TopicRanges.fold(rows[:place])
    before = {topic: base.numbers(topic) for topic in base.held}
    assert TopicRanges.fold(rows[place:], base) == TopicRanges.fold(rows)
    assert {topic: base.numbers(topic) for topic in base.held} == before, "a fork sees it as it was"


@pytest.mark.slow
@given(some_rows())
def test_what_was_moved_and_moved_back_is_as_before(rows: list[Row]) -> None:
    before = TopicRanges.fold(rows)
    for topic in before.held:
        moved = TopicRanges.fold(write_rows("other", before.of(topic), str), before)
        assert moved.of(topic) == ()
        assert moved.numbers("other") == before.numbers(topic)
        assert TopicRanges.fold(write_rows(topic, before.of(topic), str), moved) == before


def test_what_was_out_of_view_goes_with_what_comes_behind_it() -> None:
    ranges = TopicRanges.fold([put("t1", 1, 2), put("t2", 5, 6)])
    assert ranges.held == {"t1": ((1, 2),), "t2": ((3, 6),)}


def test_references_keep_their_order_and_move_nothing() -> None:
    rows = [put("t1", 1, 9), *write_rows("t2", [(5, 6), (1, 2)], str, also=True)]
    ranges = TopicRanges.fold(rows)
    assert ranges.references("t2") == ((5, 6), (1, 2))
    assert ranges.held == {"t1": ((1, 9),)}
    assert ranges.references("t1") == ()


def test_rows_name_the_last_message_on_their_branch() -> None:
    assert write_rows("t1", [(1, 3)], "ref {}".format) == [
        {"topic": "t1", "first": 1, "last": 3, "at": "ref 3"}
    ]


@given(st.sets(st.integers(1, 40)), st.sets(st.integers(1, 40)))
def test_numbers_as_ranges_and_back(numbers: set[int], hidden: set[int]) -> None:
    ranges = make_ranges(numbers)
    assert list(list_numbers(ranges)) == sorted(numbers)
    bridged = set(list_numbers(make_ranges(numbers, hidden)))
    assert numbers <= bridged <= numbers | hidden
