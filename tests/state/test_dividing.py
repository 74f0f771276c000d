"""Dividing topics: parts that help, and a cut that always ends."""

from __future__ import annotations

import itertools

from hypothesis import given, strategies as st
from tables import each_row

from topicloom.state.dividing import (
    absorb_small_parts,
    cut_rounds,
    divide_rounds,
    find_preceding,
)
from topicloom.state.rounds import Round
from topicloom.state.splitting import Portion
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topic_names import number_names


def round_(seq: int, tokens: int) -> Round:
    """A round whose size is the length of its text."""
    return Round((StoredMessage(seq=seq, role="user", text="x" * tokens, time=""),))


def blocks_of_sizes(*sizes: int) -> list[Round]:
    return [round_(n, size) for n, size in enumerate(sizes, start=1)]


def size(held: Round) -> int:
    return len(held.text)


def total(part: tuple[Round, ...]) -> int:
    return sum(map(size, part))


def part(name: str, *rounds: Round) -> Portion:
    return Portion(None, name, "", tuple(rounds))


def test_subjects_that_help_are_taken() -> None:
    rounds = blocks_of_sizes(*[30, 40] * 6)
    said = [part(name, *rounds[n::3]) for n, name in enumerate(["Tea", "Rain", "Sea"])]
    assert divide_rounds("All", rounds, said, size, 400) == said


@each_row("count", [0, 1, 3])
def test_an_answer_that_does_not_help_gives_way_to_a_cut(count: int) -> None:
    rounds = blocks_of_sizes(*[10] * 20)
    said = {
        0: [],
        1: [part("Tea", *rounds)],
        3: [part("Tea", *rounds[2:]), part("a", rounds[0]), part("b", rounds[1])],
    }[count]
    parts = divide_rounds("Rain", rounds, said, size, 180)
    assert [p.name for p in parts] == ["Rain (1)", "Rain (2)"]
    assert [b.first for p in parts for b in p.rounds] == list(range(1, 21))
    assert [total(p.rounds) for p in parts] == [100, 100]


def test_numbers_go_on_after_those_that_are_taken() -> None:
    names = number_names("Rain (2)", {"Rain (1)", "Rain (2)", "Rain (4)"})
    assert list(itertools.islice(names, 2)) == ["Rain (3)", "Rain (5)"]


def test_the_blocks_of_crumbs_go_where_the_blocks_before_them_are() -> None:
    rounds = blocks_of_sizes(5, 50, 5, 60, 5)
    said = [part("a", rounds[0]), part("b", rounds[1]), part("c", rounds[2], rounds[4])]
    said.append(part("d", rounds[3]))
    kept = absorb_small_parts(said, size, 2)
    assert [(p.name, [b.first for b in p.rounds]) for p in kept] == [
        ("b", [1, 2, 3]),
        ("d", [4, 5]),
    ]
    assert absorb_small_parts(said, size, 4) == said


def test_matters_of_one_exchange_are_no_parts_of_their_own() -> None:
    rounds = blocks_of_sizes(*[10] * 100)
    said = [part(f"n{n}", *(b for b in rounds if b.first % 10 == n)) for n in range(6)]
    said += [part(f"m{b.first}", b) for b in rounds if b.first % 10 >= 6]
    parts = divide_rounds("All", rounds, said, size, 999)
    assert len(parts) == 8
    assert {f"n{n}" for n in range(6)} <= {p.name for p in parts}
    assert sorted(b.first for p in parts for b in p.rounds) == list(range(1, 101))
    assert divide_rounds("All", rounds, said, size, 999, by_model=True) == said


def test_a_topic_that_falls_to_pieces_is_cut() -> None:
    rounds = blocks_of_sizes(*[10] * 100)
    parts = divide_rounds("All", rounds, [part(f"n{b.first}", b) for b in rounds], size, 500)
    assert [p.name for p in parts] == ["All (1)", "All (2)", "All (3)"]


def test_a_block_that_is_too_large_stands_alone() -> None:
    runs = cut_rounds(blocks_of_sizes(10, 900, 10, 10), size, 100)
    assert [[b.first for b in run] for run in runs] == [[1], [2], [3, 4]]


def test_the_topic_of_the_nearest_message_before_is_found() -> None:
    homes = [(3, 0), (7, 1)]
    assert [find_preceding(homes, n) for n in (1, 3, 5, 7, 9)] == [0, 0, 0, 1, 1]


SIZES = st.lists(st.integers(0, 300), min_size=2, max_size=40)


@given(sizes=SIZES, limit=st.integers(1, 400))
def test_a_cut_keeps_everything_in_order_and_fits(sizes: list[int], limit: int) -> None:
    runs = cut_rounds(blocks_of_sizes(*sizes), size, limit)
    assert len(runs) >= 2
    assert [b.first for run in runs for b in run] == list(range(1, len(sizes) + 1))
    assert all(total(run) <= limit or len(run) == 1 for run in runs)


@given(small=st.lists(st.integers(1, 20), min_size=20, max_size=60))
def test_a_cut_is_balanced(small: list[int]) -> None:
    whole = sum(small)
    runs = cut_rounds(blocks_of_sizes(*small), size, whole - 1)
    assert len(runs) == 2
    assert abs(total(runs[0]) - total(runs[1])) <= 2 * max(small)


@given(sizes=SIZES, limit=st.integers(1, 400), labels=st.lists(st.integers(0, 39), min_size=40))
def test_parts_have_every_block_once_and_are_smaller(
    sizes: list[int], limit: int, labels: list[int]
) -> None:
    rounds = blocks_of_sizes(*sizes)
    said = [
        Portion(None, f"n{label}", "", tuple(b for b in rounds if labels[b.first - 1] == label))
        for label in dict.fromkeys(labels[: len(rounds)])
    ]
    parts = divide_rounds("All", rounds, said, size, limit)
    assert len(parts) >= 2
    assert sorted(b.first for p in parts for b in p.rounds) == [b.first for b in rounds]
    for each in parts:
        order = [b.first for b in each.rounds]
        assert order
        assert order == sorted(order)
        assert len(order) < len(rounds)
    assert len({p.name for p in parts}) == len(parts)
