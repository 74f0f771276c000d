"""Why a turn did not quote a message: one step of the turn each."""

from __future__ import annotations

from typing import Any

from tables import each_row

from topicloom import Call, Receipt, TopicNote
from topicloom.memory.absence import AbsenceStep, find_step
from topicloom.state.session import ReadingEffect, Search


def note(*quotes: str) -> TopicNote:
    return TopicNote(topic="t1", name="Tea", score=0.9, quotes=quotes)


def receipt(user: str = "m90", **fields: Any) -> Receipt:
    """Of a turn that read t1, with messages from m80 on in view, and notes from m85 on."""
    given = {"turn": 9, "started": "", "seconds": 1, "scores": {"t1": 0.5}, "view": 80}
    given |= {"noted": 85, "calls": (Call(role="reader", topic="t1", model="small"),)}
    return Receipt.model_validate({"user": user, **given, **fields})


EARLIER = [
    receipt("m83", quoted=(note("m5"),)),
    receipt("m86", quoted=(note("m6"),)),
]


@each_row(
    ("number", "fields", "step"),
    [
        (7, {"quoted": (note("m7"),)}, "quoted"),
        (82, {}, "in_view"),
        (6, {}, "quoted_before"),
        (5, {}, "passed_over"),  # that note is gone
        (7, {"crowded_out": ("m7",)}, "no_budget"),
        (7, {"scores": {}, "calls": ()}, "asleep"),
        (7, {"calls": (Call(role="reader", topic="t1"),)}, "not_found"),
        (
            7,
            {"calls": (Call(role="reader", topic="t1", model="small", failure="late"),)},
            "reader_failed",
        ),
    ],
)
def test_each_step_that_loses_a_message_is_named(
    number: int, fields: dict[str, Any], step: AbsenceStep
) -> None:
    assert find_step(number, receipt(**fields), EARLIER, "t1", "active", None) == step


def test_what_the_index_finds_lost_for_want_of_room_read_or_not() -> None:
    for scores in ({"t1": 0.5}, {}):
        assert find_step(7, receipt(scores=scores), [], "t1", "dormant", "no_budget") == "no_budget"


def test_what_a_reader_read_and_left_out_was_passed_over_though_the_index_found_it() -> None:
    left_out: dict[str, Any] = {"reading": ReadingEffect(kept_out=("m7",))}
    assert find_step(7, receipt(**left_out), [], "t1", "active", "no_budget") == "passed_over"
    unread: dict[str, Any] = {"scores": {}, "calls": ()}
    for other in (receipt(**left_out, crowded_out=("m7",)), receipt(**left_out, **unread)):
        assert find_step(7, other, [], "t1", "active", "no_budget") == "no_budget"


def test_a_message_that_needs_nothing_looked_for_nothing_unless_a_search_was_made() -> None:
    idle: dict[str, Any] = {"idle": True, "scores": {}, "calls": ()}
    for state in ("active", "archived"):
        assert find_step(7, receipt(**idle), [], "t1", state, "no_budget") == "needs_nothing"
    assert find_step(6, receipt(**idle), EARLIER, "t1", "active", "no_budget") == "quoted_before"
    searched = receipt(**idle, searches=(Search(query="tea"),))
    assert find_step(7, searched, [], "t1", "active", "no_budget") == "no_budget"


def test_what_is_archived_is_not_looked_for_unless_somebody_asks() -> None:
    plain = receipt(scores={}, calls=())
    asked = receipt(scores={}, calls=(), searches=(Search(query="tea", archived=True),))
    assert find_step(7, plain, [], "t1", "archived", "no_budget") == "archived"
    assert find_step(7, asked, [], "t1", "archived", "no_budget") == "no_budget"
    assert find_step(7, asked, [], "t1", "archived", None) == "asleep"
