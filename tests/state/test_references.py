"""References: who refers to what, what a reader is shown of it, and what a division does to it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from topicloom.state.lifecycle import merge_in_order
from topicloom.state.references import (
    MAX_SHOWN,
    collect_references,
    distribute_references,
    select_newest,
)
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.splitting import Portion
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topic_ranges import Range


def message(seq: int, text: str = "x") -> StoredMessage:
    return StoredMessage(seq=seq, role="user" if seq % 2 else "assistant", text=text, time="")


def some_blocks(count: int) -> list[Round]:
    return group_rounds(message(n) for n in range(1, 2 * count + 1))


def reference(first: int) -> Range:
    return first, first + 1


def test_others_refer_to_small_blocks_of_a_portion() -> None:
    a, b, c = some_blocks(3)
    portion = Portion(
        "t1", "", "", (a, b, c), {1: ("t2", "t1"), 3: ("Tea", "t2", "t9"), 5: ("Tea",)}
    )
    ids = {"t1": "t1", "t2": "t2", "Tea": "t3"}
    assert collect_references(portion, "t1", [a, b], ids) == {
        "t2": [reference(1), reference(3)],
        "t3": [reference(3)],
    }


@given(st.integers(0, 60))
def test_a_reader_is_shown_the_newest(count: int) -> None:
    held = [reference(2 * n + 1) for n in range(count)]
    seen = select_newest(held)
    assert len(seen) <= MAX_SHOWN
    assert len(seen) >= min(count, MAX_SHOWN // 2 + 1)
    assert seen == held[count - len(seen) :]


def test_what_is_shown_loses_its_beginning_seldom() -> None:
    held = [reference(2 * n + 1) for n in range(40)]
    seen = [select_newest(held[:n]) for n in range(41)]
    broken = sum(b[: len(a)] != a for a, b in pairwise(seen))
    assert broken == (40 - MAX_SHOWN) // (MAX_SHOWN // 2)


def test_parts_get_the_references_that_came_after_what_they_have() -> None:
    a, b, c, d = some_blocks(4)
    parts = {"t5": [a, c], "t6": [b, d]}
    found = distribute_references([reference(4), reference(6), reference(100)], parts)
    assert found == {"t6": [reference(4), reference(100)], "t5": [reference(6)]}
    assert distribute_references([], parts) == {}


@given(st.lists(st.lists(st.sampled_from("ho"), min_size=1, max_size=6), min_size=1, max_size=8))
def test_a_window_with_messages_of_others_grows_at_its_end(splits: list[list[str]]) -> None:
    own: list[StoredMessage] = []
    others: list[StoredMessage] = []
    before: list[StoredMessage] = []
    number = 0
    for kinds in splits:
        for kind in kinds:
            number += 1
            (own if kind == "h" else others).append(message(number))
        window = merge_in_order(others, own)
        assert window[: len(before)] == before
        assert len(window) == number
        before = window


def test_a_message_that_came_home_is_shown_once() -> None:
    shown = merge_in_order([message(2), message(4)], [message(1), message(2)])
    assert [r.seq for r in shown] == [1, 2, 4]
