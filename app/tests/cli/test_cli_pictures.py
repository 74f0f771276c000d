"""Timelines, excerpts and runs of ids: pure, so tested alone."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len

from topicloom import StoredMessage, TopicNote
from topicloom_app.cli._timeline import choose_axis, draw_row, find_maximum
from topicloom_app.cli._views import count_quotes, find_excerpt, format_day, format_runs, shorten
from topicloom_app.cli.console import strip_control, to_one_line


def message(seq: int, day: str, text: str = "") -> StoredMessage:
    return StoredMessage(seq=seq, role="user", text=text, time=f"{day}T09:00:00+01:00")


def test_a_picture_by_days() -> None:
    messages = [message(1, "2026-03-01"), *(message(n, "2026-03-10") for n in range(2, 10))]
    axis = choose_axis(messages, 12)
    assert (axis.columns, axis.unit) == (10, "a column is a day")
    assert draw_row(messages, axis, find_maximum([messages], axis)) == "▁        █"
    assert axis.heading == "Mar"


def test_a_picture_over_months() -> None:
    messages = [message(1, "2026-03-02"), message(2, "2026-04-20"), message(3, "2026-06-07")]
    axis = choose_axis(messages, 48)
    assert axis.unit == "a column is 3 days"
    assert axis.heading.split() == ["Mar", "Apr", "May", "Jun"]
    assert draw_row(messages, axis, 1).count("▁") == 3


def test_a_short_conversation_is_drawn_by_message() -> None:
    messages = [message(n, "2026-03-02") for n in range(1, 101)]
    axis = choose_axis(messages, 20)
    assert (axis.columns, axis.unit) == (20, "a column is 5 messages")
    assert axis.heading == "m1              m100"
    assert draw_row(messages, axis, 5) == "█" * 20


@given(st.lists(st.sampled_from(["2026-03-02", "2027-01-31", "no date", "2026-03-04"])))
def test_every_message_has_a_column(days: list[str]) -> None:
    messages = [message(n, day) for n, day in enumerate(days, start=1)]
    axis = choose_axis(messages, 12)
    assert 1 <= axis.columns <= 12
    assert all(0 <= axis.find_column(r) < axis.columns for r in messages)
    assert len(draw_row(messages, axis, 3)) == axis.columns


@pytest.mark.slow
@given(st.text(), st.integers(1, 60))
def test_shortened_fits(text: str, width: int) -> None:
    assert cell_len(shorten(text, width)) <= width


@given(st.text(), st.text(), st.integers(8, 60))
def test_excerpts_fit(text: str, wanted: str, width: int) -> None:
    assert cell_len(find_excerpt(text, wanted, width)) <= width


def test_an_excerpt_shows_what_is_wanted() -> None:
    text = "First a lot of talk. " * 20 + "The torque is 1.2 newton metres." + " More." * 50
    assert "torque is 1.2 newton" in find_excerpt(text, "1.2 newton metres of torque", 60)
    assert find_excerpt("short", "anything", 20) == "short"


def test_nothing_steers_the_terminal() -> None:
    assert strip_control("a\x1b[2Jb\x07\tc\nd\x9b1m") == "a[2Jb\tc\nd1m"
    assert to_one_line("a\r\n  b\x1b]0;x\x07") == "a b]0;x"


def note(topic: str, *quotes: str) -> TopicNote:
    return TopicNote(topic=topic, name=f"name of {topic}", score=0.5, quotes=quotes)


def test_counts_of_quotes() -> None:
    notes = [note("t1", "m1"), note("t2"), note("t3", "m2", "m3")]
    assert count_quotes(notes) == "2 from name of t3, 1 from name of t1"
    assert count_quotes(notes, 1) == "2 from name of t3, 1 from other topics"
    assert count_quotes([]) == "nothing"
    assert format_runs(["m10", "m2", "m3", "m4"]) == "m2-m4, m10"


@pytest.mark.parametrize(
    ("day", "expected"), [("2026-03-02", "2 March 2026"), ("later\x1b", "later")]
)
def test_days_as_people_write_them(day: str, expected: str) -> None:
    assert format_day(day) == expected
