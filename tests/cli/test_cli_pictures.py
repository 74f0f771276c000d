"""Timelines, excerpts, runs of ids and the account: pure, so tested alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from topicloom.cli._account import account_of
from topicloom.cli._excerpts import Rarity, counted, excerpt, runs, shortened
from topicloom.cli._timeline import axis_of, fullest, picture
from topicloom.cli._views import written
from topicloom.cli.console import clean, one_line
from topicloom.state.recall import TopicNote
from topicloom.state.receipt import Receipt
from topicloom.state.session import Search
from topicloom.state.stored_message import Record


def record(seq: int, day: str, text: str = "") -> Record:
    return Record(seq=seq, role="user", text=text, time=f"{day}T09:00:00+01:00")


def test_a_picture_by_days() -> None:
    records = [record(1, "2026-03-01"), *(record(n, "2026-03-10") for n in range(2, 10))]
    axis = axis_of(records, 12)
    assert (axis.columns, axis.unit) == (10, "a column is a day")
    assert picture(records, axis, fullest([records], axis)) == "▁        █"
    assert axis.heading == "Mar"


def test_a_picture_over_months() -> None:
    records = [record(1, "2026-03-02"), record(2, "2026-04-20"), record(3, "2026-06-07")]
    axis = axis_of(records, 48)
    assert axis.unit == "a column is 3 days"
    assert axis.heading.split() == ["Mar", "Apr", "May", "Jun"]
    assert picture(records, axis, 1).count("▁") == 3


def test_a_short_conversation_is_drawn_by_message() -> None:
    records = [record(n, "2026-03-02") for n in range(1, 101)]
    axis = axis_of(records, 20)
    assert (axis.columns, axis.unit) == (20, "a column is 5 messages")
    assert axis.heading == "m1              m100"
    assert picture(records, axis, 5) == "█" * 20


@given(st.lists(st.sampled_from(["2026-03-02", "2027-01-31", "no date", "2026-03-04"])))
def test_every_message_has_a_column(days: list[str]) -> None:
    records = [record(n, day) for n, day in enumerate(days, start=1)]
    axis = axis_of(records, 12)
    assert 1 <= axis.columns <= 12
    assert all(0 <= axis.place(r) < axis.columns for r in records)
    assert len(picture(records, axis, 3)) == axis.columns


@given(st.text(), st.integers(1, 60))
def test_shortened_fits(text: str, width: int) -> None:
    assert cell_len(shortened(text, width)) <= width


@given(st.text(), st.text(), st.integers(8, 60))
def test_excerpts_fit(text: str, wanted: str, width: int) -> None:
    assert cell_len(excerpt(text, wanted, width)) <= width


def test_an_excerpt_shows_what_is_wanted() -> None:
    text = "First a lot of talk. " * 20 + "The torque is 1.2 newton metres." + " More." * 50
    assert "torque is 1.2 newton" in excerpt(text, "1.2 newton metres of torque", 60)
    assert excerpt("short", "anything", 20) == "short"


def test_nothing_steers_the_terminal() -> None:
    assert clean("a\x1b[2Jb\x07\tc\nd\x9b1m") == "a[2Jb\tc\nd1m"
    assert one_line("a\r\n  b\x1b]0;x\x07") == "a b]0;x"


def test_rare_words_say_more_than_frequent_ones() -> None:
    talk = [record(n, "2026-03-02", "with kitchen") for n in range(1, 9)]
    rare = record(9, "2026-03-02", "with hazelnut")
    rarity = Rarity([*talk, rare])
    assert rarity.nearest("what with kitchen hazelnut", [talk[0], rare]) == [rare, talk[0]]
    assert rarity.shared("nothing", "shared") == 0.0


def note(topic: str, *quotes: str) -> TopicNote:
    return TopicNote(topic=topic, name=f"name of {topic}", score=0.5, quotes=quotes)


def test_counts_of_quotes() -> None:
    notes = [note("t1", "m1"), note("t2"), note("t3", "m2", "m3")]
    assert counted(notes) == "2 from name of t3, 1 from name of t1"
    assert counted(notes, 1) == "2 from name of t3, 1 from other topics"
    assert counted([]) == "nothing"
    assert runs(["m10", "m2", "m3", "m4"]) == "m2-m4, m10"


@pytest.mark.parametrize(
    ("day", "expected"), [("2026-03-02", "2 March 2026"), ("later\x1b", "later")]
)
def test_days_as_people_write_them(day: str, expected: str) -> None:
    assert written(day) == expected


def receipt(turn: int, **fields: object) -> Receipt:
    base = {"user": f"m{turn}", "started": "", "seconds": 0.0, "scores": {}}
    return Receipt.model_validate({"turn": turn, **base, **fields})


def test_the_account_of_receipts() -> None:
    receipts = [
        receipt(1, active=("t1",), split=("t1",), sections={"tail": 70}),
        receipt(2, slept=("t1",)),
        *(receipt(turn) for turn in range(3, 15)),
        receipt(15, woken=("t1",), active=("t1",), quoted=(note("t1", "m4"),)),
        receipt(
            16,
            woken=("t2",),
            quoted=(note("t2", "m5"),),
            searches=(Search(query="it", found=("t2",)),),
        ),
    ]
    account = account_of(receipts)
    assert (account.splits, account.largest) == (1, 70)
    assert [(w.note.topic, w.asleep, w.user) for w in account.wakings] == [("t1", 13, "m15")]
    assert [r.turn for r in account.forgotten] == [16]
    assert account_of([]).wakings == ()
