"""Reading turn logs, and what receipts say of topics."""

from __future__ import annotations

from pathlib import Path

import pytest
from turn_logs import Day, log_of, write_log

from topicloom import ActivationPolicy, InputError
from topicloom_lab.tuning.turnlog import (
    names_in,
    quoted_in,
    ranking,
    read_log,
    searched_for_cue,
    sought_in,
)

POLICY = ActivationPolicy()
DAYS = [
    Day({"t1": 0.9, "t2": 0.8}, split=("t1", "t2")),
    *[Day({"t1": 0.9, "t2": 0.0}) for _ in range(9)],
    Day({"t1": 0.1, "t2": 0.19}, asked_for=("t2",)),
]


def test_a_log_is_read_in_order_of_turns(tmp_path: Path) -> None:
    receipts = log_of(DAYS)
    shuffled = [receipts[3], *receipts[:3], *receipts[4:]]
    path = write_log(tmp_path / "log.jsonl", shuffled)
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    assert read_log(path) == receipts


def test_of_a_turn_that_was_taken_anew_the_later_receipt_counts(tmp_path: Path) -> None:
    first, second, *_ = log_of(DAYS)
    again = second.model_copy(update={"user": "m99"})
    assert read_log(write_log(tmp_path / "log.jsonl", [first, second, again])) == [first, again]


@pytest.mark.parametrize("content", ["{}", "[1]", "tea", '{"turn": "one"}'])
def test_a_line_that_is_no_receipt_is_named(tmp_path: Path, content: str) -> None:
    path = write_log(tmp_path / "log.jsonl", log_of(DAYS)[:1])
    path.write_text(path.read_text("utf-8") + content, "utf-8")
    with pytest.raises(InputError, match=r"line 2 of .*log.jsonl is no receipt"):
        read_log(path)


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_what_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "log.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match="cannot read the turn log"):
        read_log(path)


def test_a_line_separator_within_a_text_ends_no_line(tmp_path: Path) -> None:
    receipt = log_of(DAYS)[0].model_copy(update={"events": ("one\u2028two",)})
    assert read_log(write_log(tmp_path / "log.jsonl", [receipt])) == [receipt]


def test_what_was_quoted_and_named() -> None:
    receipts = log_of(DAYS)
    assert quoted_in(receipts[0]) == {"t1": 2, "t2": 2}
    assert names_in(receipts) == {"t1": "About t1", "t2": "About t2"}
    assert ranking({"t2": 0.5, "t1": 0.5, "t3": 0.7}) == {"t3": 0, "t1": 1, "t2": 2}


class TestSearches:
    def test_what_only_a_search_woke(self) -> None:
        policy = POLICY.model_copy(update={"floor": 0})
        last = log_of(DAYS, policy)[-1]
        assert last.searches
        assert sought_in(last, policy) == {"t2"}
        assert searched_for_cue(last)

    def test_what_would_have_woken_anyway_was_not_the_search(self) -> None:
        policy = POLICY.model_copy(update={"floor": 0})
        last = log_of(DAYS, policy)[-1]
        loud = last.model_copy(update={"scores": {"t1": 0.1, "t2": 0.9}})
        assert sought_in(loud, policy) == set()
        by_model = tuple(
            c.model_copy(update={"model": "m"}) if c.role == "reader" else c for c in loud.calls
        )
        # What a model makes of a topic says nothing of how the index had rated it.
        assert sought_in(loud.model_copy(update={"calls": by_model}), policy) == {"t2"}

    def test_a_search_of_the_model_comes_after_its_first_words(self) -> None:
        policy = POLICY.model_copy(update={"floor": 0})
        last = log_of(DAYS, policy)[-1]
        later = last.model_copy(update={"calls": last.calls[::-1]})
        assert not searched_for_cue(later)
        assert not searched_for_cue(log_of(DAYS, policy)[0])
