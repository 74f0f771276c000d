"""Facts: one key a fact, the newer one stays, and doing it twice changes nothing."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given, strategies as st

from topicloom.reflection.facts import Fact, FactChanges, merge_facts


def fact(text: str, day: int = 1, message: str = "m1", *replaces: str) -> Fact:
    return Fact(text, (message,), f"2026-03-{day:02}T09:00:00+00:00", replaces)


def kept(known: dict[str, Fact], done: FactChanges) -> dict[str, Fact]:
    left = {k: f for k, f in known.items() if k not in done.retired}
    return left | {f.key: f for f in done.written}


def by_key(*facts: Fact) -> dict[str, Fact]:
    return {f.key: f for f in facts}


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
    replacing = fact("I live in Oslo", 9, "m9", LEEDS.key)
    assert [Fact.of(f.value) for f in (LEEDS, replacing)] == [LEEDS, replacing]


def test_what_is_said_on_two_branches_is_of_both() -> None:
    one, other = (replace(LEEDS, refs=(ref,)) for ref in ("a", "b"))
    (both,) = merge_facts([(other, [])], by_key(one)).written
    assert both.refs == ("a", "b")
    assert Fact.of(both.value) == both


def test_values_edited_by_hand_hold_no_fact() -> None:
    for wrong in ({}, {"fact": 3}, LEEDS.value | {"messages": "m1"}, LEEDS.value | {"at": None}):
        assert Fact.of(wrong) is None


def test_a_newer_fact_takes_the_place_of_an_older_one() -> None:
    done = merge_facts([(OSLO, [LEEDS.key])], by_key(LEEDS))
    assert done.retired == (LEEDS.key,)
    assert done.written == (fact("I live in Oslo", 9, "m9", LEEDS.key),)


def test_an_older_fact_takes_nobodys_place() -> None:
    done = merge_facts([(LEEDS, [OSLO.key])], by_key(OSLO))
    assert (done.retired, done.written) == ((), (LEEDS,))


def test_what_was_replaced_comes_back_with_newer_messages_only() -> None:
    known = kept(by_key(LEEDS), merge_facts([(OSLO, [LEEDS.key])], by_key(LEEDS)))
    assert merge_facts([(LEEDS, [])], known) == FactChanges((), (), 1)
    back = fact("I live in Leeds", 20, "m20")
    known = kept(known, merge_facts([(back, [OSLO.key])], known))
    assert list(known) == [LEEDS.key]


def test_what_gave_way_leaves_its_predecessor_to_what_took_its_place() -> None:
    bath = fact("I live in Bath", 3, "m3")
    known = kept(by_key(LEEDS, bath), merge_facts([(OSLO, [bath.key])], by_key(LEEDS, bath)))
    (left,) = kept(known, merge_facts([(bath, [LEEDS.key])], known)).values()
    assert (left.text, left.replaces) == (OSLO.text, (bath.key, LEEDS.key))


def test_what_is_said_again_rests_on_more_messages() -> None:
    again = fact("i live in leeds.", 5, "m5")
    (written,) = merge_facts([(again, [])], by_key(LEEDS)).written
    assert written == Fact("I live in Leeds", ("m1", "m5"), again.at)


def test_within_one_reflection_the_last_word_counts() -> None:
    done = merge_facts([(LEEDS, []), (OSLO, [LEEDS.key])], {})
    assert [f.text for f in done.written] == ["I live in Oslo"]


texts = st.sampled_from(["a", "b", "c", "d", "e"])
said = st.lists(
    st.tuples(st.builds(fact, texts, st.integers(1, 28)), st.lists(texts, max_size=2)),
    max_size=8,
    unique_by=lambda row: row[0].at,
)
"""Facts of different times, each with the words of those that it takes the place of."""


@given(said, said)
@example(
    [(fact("c", 1), []), (fact("a", 2), ["c"])],
    [(fact("b", 1), []), (fact("c", 2), ["b"]), (fact("c", 3), ["a"])],
)
def test_twice_is_once(
    earlier: list[tuple[Fact, list[str]]], later: list[tuple[Fact, list[str]]]
) -> None:
    def keyed(rows: list[tuple[Fact, list[str]]]) -> list[tuple[Fact, list[str]]]:
        return [(f, [fact(t).key for t in ts]) for f, ts in sorted(rows, key=lambda r: r[0].at)]

    known = kept({}, merge_facts(keyed(earlier), {}))
    once = kept(known, merge_facts(keyed(later), known))
    twice = kept(once, merge_facts(keyed(later), once))
    assert twice == once
    assert all(f.key == key for key, f in once.items())
