"""Facts: one key a fact, and what a store keeps of one."""

from __future__ import annotations

from topicloom import Fact, Said


def fact(text: str, day: int = 1, message: str = "m1", *replaces: str) -> Fact:
    return Fact(text, (message,), f"2026-03-{day:02}T09:00:00+00:00", replaces)


LEEDS, OSLO = fact("I live in Leeds", 1, "m1"), fact("I live in Oslo", 9, "m9")


def test_the_key_goes_by_the_words() -> None:
    assert fact("I  live in LEEDS.").key == LEEDS.key != OSLO.key
    assert fact("I like C++").key != fact("I like C").key
    assert len(LEEDS.key) == 24


def test_the_value_is_json_and_comes_back() -> None:
    assert LEEDS.value == {
        "fact": "I live in Leeds",
        "messages": ["m1"],
        "at": "2026-03-01T09:00:00+00:00",
    }
    said = (Said(OSLO.at, "m9", "a"),)
    dated = Fact("I live in Oslo", ("m9",), OSLO.at, (LEEDS.key,), said, "2026-01-01", quote="Oslo")
    assert [Fact.of(f.value) for f in (LEEDS, dated)] == [LEEDS, dated]


def test_values_edited_by_hand_hold_no_fact() -> None:
    for wrong in (
        {},
        {"fact": 3},
        LEEDS.value | {"messages": "m1"},
        LEEDS.value | {"at": None},
        LEEDS.value | {"said": [["a"], 3]},
    ):
        assert Fact.of(wrong) is None
