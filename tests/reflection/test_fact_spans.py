"""Since when and until when facts hold: ended by what was said later, and never removed."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from tables import each_row

from topicloom import Fact, Said
from topicloom.reflection.fact_spans import (
    ThreadFact,
    find_spans,
    limit_to_branch,
    limit_to_time,
    list_said,
    record_facts,
)
from topicloom.reflection.grounding import read_date


def said(
    text: str, day: str, number: int = 1, since: str = "", until: str = "", quote: str = ""
) -> Fact:
    time = f"2026-{day}T09:00:00+00:00"
    fact = Fact(text, (f"m{number}",), time, said=(Said(time, f"m{number}"),))
    return replace(fact, since=since, until=until, quote=quote)


ULM, BONN = "I live in Ulm.", "I live in Bonn."
KEY = {text: Fact(text, (), "").key for text in (ULM, BONN, "I live in Kiel.")}


def record(*facts: tuple[Fact, tuple[str, ...]]) -> dict[str, Fact]:
    """The facts of a thread whose reflections found some, one after the other."""
    own: dict[str, Fact] = {}
    for fact, contradicted in facts:
        keys = [KEY[text] for text in contradicted]
        changes = record_facts([(fact, keys)], own, own)
        assert not changes.retired
        own |= {f.key: f for f in changes.written}
        assert not record_facts([(fact, keys)], own, own).written, "twice is once"
    return own


def show(*threads: dict[str, Fact]) -> list[tuple[str, str, str]]:
    facts = [ThreadFact(f"t{n}", "", f) for n, own in enumerate(threads) for f in own.values()]
    spans = find_spans(facts)
    return [(s.text[10:-1], s.since[5:10], s.until[5:10]) for s in spans]


def test_a_newer_one_ends_the_older_one_and_keeps_it() -> None:
    own = record((said(ULM, "02-01"), ()), (said(BONN, "05-03", 3), (ULM,)))
    assert show(own) == [("Ulm", "02-01", "05-03"), ("Bonn", "05-03", "")]


def test_what_held_twice_has_two_spans() -> None:
    own = record(
        (said(ULM, "02-01"), ()),
        (said(BONN, "05-03", 3), (ULM,)),
        (said("I live in Kiel.", "06-01", 5), (BONN,)),
        (said(ULM, "09-01", 7), ()),
    )
    assert show(own) == [
        ("Ulm", "02-01", "05-03"),
        ("Bonn", "05-03", "06-01"),
        ("Kiel", "06-01", "09-01"),
        ("Ulm", "09-01", ""),
    ]


def test_what_is_learnt_late_ended_long_ago() -> None:
    """A message of an old chat is imported after a newer one was reflected upon."""
    own = record((said(BONN, "05-03", 3), ()), (said(ULM, "02-01"), (BONN,)))
    assert show(own) == [("Ulm", "02-01", "05-03"), ("Bonn", "05-03", "")]


def test_words_say_since_and_until_when() -> None:
    own = record(
        (said(ULM, "05-03", since="2026-01-01", until="2026-04-30"), ()),
        (said(BONN, "05-04", 3, since="2026-05-01"), (ULM,)),
    )
    assert show(own) == [("Ulm", "01-01", "04-30"), ("Bonn", "05-01", "")]


def test_what_is_said_of_the_past_ends_nothing() -> None:
    own = record((said(BONN, "02-01"), ()), (said(ULM, "05-01", until="2025-12-31"), (BONN,)))
    assert ("Bonn", "02-01", "") in show(own)


def test_what_was_purged_ends_nothing() -> None:
    own = record((said(ULM, "02-01"), ()), (said(BONN, "05-03", 3), (ULM,)))
    del own[KEY[BONN]]
    assert show(own) == [("Ulm", "02-01", "")]


def test_two_threads_end_each_others_facts_in_any_order() -> None:
    """Neither writes what the other has; who reads them in which order does not matter."""
    first = record((said(ULM, "02-01"), ()))
    second_facts = record_facts([(said(BONN, "05-03"), [KEY[ULM]])], {}, first).written
    second = {f.key: f for f in second_facts}
    again_facts = record_facts([(said(ULM, "07-01", 9), [KEY[BONN]])], first, first | second)
    again = first | {f.key: f for f in again_facts.written}
    wanted = [("Ulm", "02-01", "05-03"), ("Bonn", "05-03", "07-01"), ("Ulm", "07-01", "")]
    for threads in permutations([again, second]):
        assert show(*threads) == wanted


def test_the_same_in_two_threads_is_one_fact() -> None:
    one, other = record((said(ULM, "02-01"), ())), record((said(ULM, "04-01", 7), ()))
    assert show(one, other) == [("Ulm", "02-01", "")]
    assert find_spans([ThreadFact("a", "", f) for f in other.values()])[0].messages == ("m7",)


def test_in_one_second_the_number_of_the_message_tells() -> None:
    own = record(
        (said(ULM, "02-01", 1), ()),
        (said(BONN, "02-01", 3), (ULM,)),
        (said("I live in Kiel.", "02-01", 5), (BONN,)),
    )
    assert [text for text, _, until in show(own) if not until] == ["Kiel"]


def test_a_branch_sees_what_was_said_on_it() -> None:
    times = ["2026-02-01T09:00:00", "2026-05-01T09:00:00"]
    fact = Fact(
        ULM, ("m1", "m3"), times[1], said=(Said(times[0], "m1", "a"), Said(times[1], "m3", "c"))
    )
    assert limit_to_branch(fact, ["a", "b", "c"]) == fact
    shared = limit_to_branch(fact, ["a", "b", "x"])
    assert shared is not None
    assert [one.time for one in shared.said] == times[:1]
    assert limit_to_branch(fact, ["x"]) is None
    assert limit_to_time(fact, 0) is None
    assert limit_to_branch(Fact(ULM, ("m1",), times[0]), []) is not None, "said elsewhere"


def test_a_fact_that_an_application_wrote_has_its_own_time() -> None:
    own = Fact(ULM, ("m1", "m3"), "2026-02-01T09:00:00")
    assert list_said(own) == (Said("2026-02-01T09:00:00", "m3"),)
    assert Fact.of(own.value) == own
    new = said(ULM, "02-01", since="2026-01-01", quote="in Ulm")
    assert Fact.of(new.value) == new


@each_row(
    ("text", "first", "last"),
    [
        ("2026", "2026-01-01", "2026-12-31"),
        ("2026-02", "2026-02-01", "2026-02-28"),
        ("2026-12", "2026-12-01", "2026-12-31"),
        ("2026-5-3", "2026-05-03", "2026-05-03"),
        ("2026-13", "", ""),
        ("May", "", ""),
        ("", "", ""),
    ],
)
def test_first_and_last_day_of_a_date(text: str, first: str, last: str) -> None:
    assert (read_date(text), read_date(text, last=True)) == (first, last)
