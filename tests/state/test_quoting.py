"""Composing a note: within its budget, nothing twice, best topic first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import given, strategies as st
from tables import each_row

from topicloom.state.note_draft import PromptCosts
from topicloom.state.quoting import (
    ReadersSay,
    Readings,
    compare_quotes,
    compose_note,
    select_quotes,
)
from topicloom.state.recall import (
    Note,
    Quote,
    Reading,
    TopicNote,
    parse_message_number,
)
from topicloom.state.session import ReadingEffect, Search

HEADING = 10
HUGE, PART = 1_000_000, 3
COSTS = PromptCosts(
    quote=lambda i: HUGE if parse_message_number(i) >= 900 else 5 + parse_message_number(i) % 7,
    excerpt=lambda i, room: (((0, PART),), PART) if room >= PART else ((), 0),
    passage=lambda i: 0,
    shorten=lambda text, limit: text[:limit],
    day=lambda i: f"2026-03-{1 + parse_message_number(i) // 8:02}",
    text=len,
    heading=lambda topic: HEADING,
)
FREE = 10_000


def reading(topic: str, score: float, *quotes: tuple[str, float], summary: str = "") -> Reading:
    return Reading(
        topic=topic,
        score=score,
        quotes=tuple(Quote(id=i, weight=w) for i, w in quotes),
        summary=summary,
    )


def by_index(topic: str, score: float, *quotes: tuple[str, float]) -> Reading:
    return reading(topic, score, *quotes).model_copy(update={"source": "index"})


def gathered(*readings: Reading) -> Readings:
    """Readings of readers and of the index, as a turn has them."""
    models = [r for r in readings if r.source == "model"]
    found = [r for r in readings if r.source == "index"]
    return Readings(models, found, answered=any(not r.failed for r in models))


def composed(
    *readings: Reading,
    budget: int = FREE,
    seen: tuple[str, ...] = (),
    readers: ReadersSay = "decide",
) -> tuple[TopicNote, ...]:
    read, names = gathered(*readings), {"t1": "Tea", "t2": "Rain"}
    return select_quotes(read, names, COSTS, budget, seen, readers=readers)[0]


def ids_of(notes: Sequence[TopicNote]) -> set[str]:
    return {i for note in notes for i in note.quotes}


def cost_of(notes: tuple[TopicNote, ...]) -> int:
    """What a note costs, counted apart: frame, days, quotes, summaries with their headings."""
    total = COSTS.frame if notes else 0
    total += COSTS.day_line * len({COSTS.day(i) for note in notes for i in note.quotes})
    for note in notes:
        total += HEADING + len(note.summary) if note.summary else 0
        total += sum(PART if i in note.partial else COSTS.quote(i) for i in note.quotes)
    return total


def test_best_topic_first_and_quotes_in_conversation_order() -> None:
    notes = composed(
        reading("t2", 0.5, ("m30", 0.5)),
        reading("t1", 0.9, ("m20", 0.9), ("m3", 0.7), ("m100", 0.8)),
    )
    assert [(n.topic, n.name, n.score) for n in notes] == [("t1", "Tea", 0.9), ("t2", "Rain", 0.5)]
    assert notes[0].quotes == ("m3", "m20", "m100")


def test_a_topic_without_a_name_goes_by_its_id() -> None:
    assert composed(reading("t9", 0.9, ("m1", 0.9)))[0].name == "t9"


def test_what_was_seen_is_not_quoted_again() -> None:
    notes = composed(reading("t1", 0.9, ("m1", 0.9), ("m2", 0.8)), seen=("m1",))
    assert notes[0].quotes == ("m2",)
    assert composed(reading("t1", 0.9, ("m1", 0.9)), seen=("m1",)) == ()


def test_one_original_is_quoted_in_one_topic() -> None:
    notes = composed(reading("t1", 0.9, ("m1", 0.5)), reading("t2", 0.8, ("m1", 0.9), ("m2", 0.1)))
    assert [(n.topic, n.quotes) for n in notes] == [("t1", ("m1",)), ("t2", ("m2",))]


def test_weights_decide_across_topics() -> None:
    """A strong original of a weaker topic goes before a weak one of the best."""
    room = COSTS.frame + COSTS.day_line + COSTS.quote("m2")
    weak, strong = by_index("t1", 0.9, ("m1", 0.2)), by_index("t2", 0.5, ("m2", 0.5))
    assert [(n.topic, n.quotes) for n in composed(weak, strong, budget=room)] == [("t2", ("m2",))]


def test_what_does_not_fit_is_passed_over_for_what_does() -> None:
    first, dear, cheap = "m6", "m5", "m7"  # cost 11, 10 and 5
    room = COSTS.frame + COSTS.day_line + COSTS.quote(first) + COSTS.quote(cheap)
    notes = composed(reading("t1", 0.9, (first, 0.9), (dear, 0.8), (cheap, 0.1)), budget=room)
    assert notes[0].quotes == (first, cheap)


def test_what_no_budget_could_hold_is_quoted_in_part() -> None:
    notes = composed(reading("t1", 0.9, ("m900", 0.9), ("m1", 0.8)))
    assert notes[0].quotes == ("m1", "m900")
    assert notes[0].partial == ("m900",)


def test_what_fits_only_without_its_day_is_quoted_in_part() -> None:
    notes = composed(reading("t1", 0.9, ("m6", 0.9)), budget=COSTS.frame + COSTS.day_line + 7)
    assert notes[0].partial == ("m6",)


def test_what_does_not_fit_is_quoted_in_part() -> None:
    found = by_index("t1", 0.9, ("m5", 1.0), ("m6", 0.6), ("m7", 0.45))
    around = COSTS.day_line + COSTS.frame
    room = around + COSTS.quote("m5") + COSTS.quote("m7") + PART + 2
    (note,) = composed(found, budget=room)
    assert (note.quotes, note.partial) == (("m5", "m6", "m7"), ("m6",))
    (note,) = composed(found, budget=room + COSTS.quote("m6"))
    assert (note.quotes, note.partial) == (("m5", "m6", "m7"), ())


def test_a_summary_stands_over_quotes_of_its_own_only() -> None:
    assert composed(reading("t1", 0.9, summary="x" * 60)) == ()
    unquoted = reading("t1", 0.9, ("m1", 0.9), summary="x" * 60)
    room = COSTS.frame + COSTS.day_line + COSTS.quote("m2")
    assert composed(unquoted, by_index("t2", 0.5, ("m2", 0.9)), budget=room)[0].summary == ""


def test_quotes_of_all_topics_go_before_any_summary() -> None:
    """A long summary gets a quarter of the budget, and not what they would have."""
    many = [(f"m{n}", 0.9) for n in range(1, 20)]
    first = reading("t1", 0.9, *many, summary="x" * 500)
    second = reading("t2", 0.5, ("m20", 0.1))
    notes = composed(first, second, budget=400)
    assert notes[1].quotes == ("m20",)
    assert 24 <= len(notes[0].summary) <= 400 / 4


def test_a_summary_of_a_few_words_stands_whole_beside_quotes_that_fill_the_note() -> None:
    many = [(f"m{n}", 0.9) for n in range(1, 99)]
    (note,) = composed(reading("t1", 0.9, *many, summary="Paid."), budget=200)
    assert note.summary == "Paid."
    assert cost_of((note,)) > 200 - COSTS.quote("m7")


ids = st.integers(1, 40).map("m{}".format)
quotes = st.lists(st.tuples(ids | st.just("m900"), st.floats(0, 1)), max_size=12)
readings = st.lists(
    st.builds(
        lambda n, s, q, text: reading(f"t{n}", s, *q, summary=text),
        st.integers(1, 6),
        st.floats(0, 1),
        quotes,
        st.text(max_size=40),
    ),
    max_size=6,
    unique_by=lambda r: r.topic,
)


class TestModelsDecide:
    """What readers named is quoted; the index adds what it is all but certain of."""

    FOUND = by_index("t1", 0.9, *((f"m{n}", 1 - n / 100) for n in range(1, 30)))

    def test_where_all_readers_find_nothing_three_originals_are_quoted_at_most(self) -> None:
        refused = [reading(f"t{n}", 0.05) for n in range(1, 7)]
        assert ids_of(composed(self.FOUND, *refused)) == {"m1", "m2", "m3"}

    def test_where_the_index_is_not_sure_nothing_is(self) -> None:
        found = by_index("t1", 0.9, *((f"m{n}", 0.8) for n in range(1, 30)))
        assert composed(found, reading("t1", 0.05)) == ()

    def test_the_quotes_are_those_of_the_reader_that_is_right(self) -> None:
        right = reading("t2", 0.95, *((f"m{n}", 0.95) for n in range(50, 62)))
        refused = [reading(f"t{n}", 0.05) for n in (1, 3, 4)]
        quoted = ids_of(composed(self.FOUND, right, *refused))
        own = {q.id for q in right.quotes}
        assert own <= quoted
        assert len(own) >= 0.8 * len(quoted)

    def test_of_a_topic_that_is_named_whole_all_is_quoted_as_far_as_it_fits(self) -> None:
        whole = reading("t2", 1.0, *((f"m{n}", 1.0) for n in range(50, 90)))
        (note,) = composed(self.FOUND, whole, budget=250)
        assert note.topic == "t2"
        assert note.quotes == tuple(f"m{n}" for n in range(50, 50 + len(note.quotes)))
        assert cost_of((note,)) > 230
        assert {q.id for q in whole.quotes} <= ids_of(composed(self.FOUND, whole))

    def test_the_best_topic_comes_first_in_the_order_of_its_reader(self) -> None:
        best = reading("t1", 0.9, ("m40", 0.9), ("m20", 0.9))
        other = reading("t2", 0.5, ("m3", 0.5))
        room = COSTS.frame + COSTS.day_line + COSTS.quote("m40")
        assert ids_of(composed(other, best, budget=room)) == {"m40"}

    def test_what_readers_named_comes_before_what_is_certain(self) -> None:
        named = reading("t2", 0.9, ("m40", 0.9))
        room = COSTS.frame + COSTS.day_line + COSTS.quote("m40")
        assert ids_of(composed(self.FOUND, named, budget=room)) == {"m40"}

    def test_the_index_stands_in_for_a_reader_that_failed_and_for_no_other(self) -> None:
        elsewhere = by_index("t2", 0.8, ("m60", 0.5), ("m61", 0.4))
        failed = reading("t2", 0.0).model_copy(update={"failed": True})
        notes = composed(self.FOUND, elsewhere, failed, reading("t1", 0.05))
        assert ids_of(notes) == {"m1", "m2", "m3", "m60", "m61"}

    def test_where_no_reader_answered_all_is_as_without_one(self) -> None:
        failed = reading("t1", 0.0).model_copy(update={"failed": True})
        assert ids_of(composed(self.FOUND, failed)) == ids_of(composed(self.FOUND))

    @pytest.mark.slow
    @given(readings, readings, st.integers(0, 400))
    def test_whatever_was_read_at_most_three_are_quoted_that_nobody_named(
        self, read: list[Reading], found: list[Reading], budget: int
    ) -> None:
        found = [r.model_copy(update={"source": "index", "summary": ""}) for r in found]
        named = {q.id for r in read for q in r.quotes}
        notes = composed(*read, *found, budget=budget)
        too_large = {"m900"}  # of it a reader may have seen a part alone
        assert not read or len(ids_of(notes) - named - too_large) <= 3


class TestModelsAdvise:
    """Half of the room is filled as if there were no model."""

    FOUND = by_index("t1", 0.9, *((f"m{n}", 1 - n / 100) for n in range(1, 60)))

    @given(st.lists(st.integers(100, 800), max_size=120, unique=True))
    def test_nonsense_costs_half_of_the_room_at_most(self, numbers: list[int]) -> None:
        nonsense = reading("t2", 1.0, *((f"m{n}", 1.0) for n in numbers))
        notes = composed(nonsense, self.FOUND, budget=400, readers="advise")
        half = ids_of(composed(self.FOUND, budget=200))
        assert half <= ids_of(notes)

    def test_what_readers_name_has_the_other_half(self) -> None:
        named = reading("t2", 0.9, *((f"m{n}", 0.9) for n in range(100, 110)))
        notes = composed(named, self.FOUND, budget=400, readers="advise")
        assert {q.id for q in named.quotes} <= ids_of(notes)

    def test_readers_that_name_nothing_take_nothing_away(self) -> None:
        notes = composed(reading("t1", 0.1), self.FOUND, budget=400, readers="advise")
        assert ids_of(notes) == ids_of(composed(self.FOUND, budget=400))


def test_a_passage_is_quoted_once_and_a_whole_original_never_again() -> None:
    def compose(passage: int, notes: list[Note]) -> Note:
        part = (passage, passage + PART)
        costs = replace(COSTS, passage=lambda _: passage, excerpt=lambda *_: ((part,), PART))
        shown = gathered(reading("t1", 1.0, ("m900", 1.0)))
        given: dict[str, Any] = {"after": 1, "in_view": set(), "search": None}
        return compose_note(shown, {}, costs, 100, notes=notes, **given).note

    notes: list[Note] = []
    for passage in (0, 900, 0, 900):
        notes.append(compose(passage, notes))
    assert [len(n.topics) for n in notes] == [1, 1, 0, 0]


def test_a_topic_with_nothing_to_say_is_not_named() -> None:
    assert composed(reading("t1", 0.9), reading("t2", 0.1)) == ()
    assert composed() == ()


@each_row("budget", [0, 1, 5, -3])
def test_without_a_budget_nothing_is_said(budget: int) -> None:
    assert composed(reading("t1", 0.9, ("m1", 0.9), summary="x"), budget=budget) == ()


@pytest.mark.slow
@given(readings, st.integers(0, 400), st.sets(ids, max_size=10))
def test_never_over_budget_and_nothing_twice(
    found: list[Reading], budget: int, seen: set[str]
) -> None:
    notes, _ = select_quotes(gathered(*found), {}, COSTS, budget, seen)
    assert cost_of(notes) <= max(budget, 0)
    quoted = [i for n in notes for i in n.quotes]
    assert len(quoted) == len(set(quoted))
    assert not seen & set(quoted)
    assert [n.score for n in notes] == sorted((n.score for n in notes), reverse=True)
    assert len({n.topic for n in notes}) == len(notes)
    room = budget - COSTS.frame - COSTS.day_line
    assert all(set(n.partial) >= {i for i in n.quotes if COSTS.quote(i) > room} for n in notes)
    assert all(n.excerpts.keys() == set(n.partial) for n in notes)
    by_topic = {r.topic: r for r in found}
    for note in notes:
        assert set(note.quotes) <= {q.id for q in by_topic[note.topic].quotes}
        assert list(note.quotes) == sorted(note.quotes, key=parse_message_number)
        assert by_topic[note.topic].summary.startswith(note.summary), "whole, or cut by tokens"


@pytest.mark.slow
@given(readings, st.integers(0, 400))
def test_the_order_of_readings_does_not_matter(found: list[Reading], budget: int) -> None:
    distinct = {q.weight for r in found for q in r.quotes}
    if len(distinct) == sum(len(r.quotes) for r in found):
        one, other = gathered(*found), gathered(*found[::-1])
        assert select_quotes(one, {}, COSTS, budget, ()) == select_quotes(
            other, {}, COSTS, budget, ()
        )


@pytest.mark.slow
@given(readings)
def test_with_room_for_all_all_is_quoted(found: list[Reading]) -> None:
    notes, _ = select_quotes(gathered(*found), {}, COSTS, FREE, ())
    quoted = {i for n in notes for i in n.quotes}
    assert quoted - {"m900"} == {q.id for r in found for q in r.quotes} - {"m900"}


@each_row(("text", "number"), [("m1", 1), ("m42", 42), ("m007", 7)])
def test_numbers_of_ids(text: str, number: int) -> None:
    assert parse_message_number(text) == number


@each_row("text", ["", "m", "42", "M42", "m-1", "m4.2", "m²", "m٤", "m 1", "t1"])
def test_what_is_no_id(text: str) -> None:
    with pytest.raises(ValueError, match="not a message id"):
        parse_message_number(text)


def test_an_empty_note_says_nothing() -> None:
    assert Note(after=1).empty
    assert not Note(after=1, searched="tea").empty
    assert not Note(after=1, candidates=("Tea",)).empty
    assert not Note(after=1, topics=(TopicNote(topic="t1", name="Tea", score=1, quotes=()),)).empty


class TestNote:
    NAMES: ClassVar[dict[str, str]] = {"t1": "Tea", "t2": "Rain"}

    def note(
        self,
        *readings: Reading,
        notes: tuple[Note, ...] = (),
        in_view: frozenset[str] = frozenset(),
        search: Search | None = None,
    ) -> Note:
        return compose_note(
            gathered(*readings),
            self.NAMES,
            COSTS,
            FREE,
            after=50,
            notes=notes,
            in_view=in_view,
            search=search,
        ).note

    def test_nothing_that_the_prompt_shows_already(self) -> None:
        found = reading("t1", 0.9, ("m1", 0.9), ("m2", 0.8), ("m3", 0.7), summary="Green.")
        before = self.note(reading("t1", 0.9, ("m1", 0.9), summary="Green."))
        note = self.note(found, notes=(before,), in_view=frozenset({"m3"}))
        assert [(t.quotes, t.summary) for t in note.topics] == [(("m2",), "")]
        assert note.after == 50

    def test_a_summary_stands_once_though_a_search_reads_its_topic_again(self) -> None:
        first = self.note(reading("t1", 0.9, ("m1", 0.9), summary="Green tea."))
        again = reading("t1", 0.9, ("m2", 0.9), summary="Green tea, as it was said.")
        note = self.note(again, notes=(first,), search=Search(query="tea"))
        assert [(t.quotes, t.summary) for t in note.topics] == [(("m2",), "")]

    def test_one_that_was_cut_is_known_again(self) -> None:
        shown = TopicNote(
            topic="t1", name="Tea", score=0.9, quotes=("m1",), summary="Green tea ..."
        )
        before = Note(after=10, topics=(shown,))
        found = reading("t1", 0.9, ("m2", 0.9), summary="Green tea is what she takes.")
        (topic,) = self.note(found, notes=(before,)).topics
        assert (topic.quotes, topic.summary) == (("m2",), "")

    def test_a_search_that_adds_nothing_says_so(self) -> None:
        search = Search(query="rain", candidates=("t2", "t9"))
        note = self.note(search=search)
        assert (note.searched, note.candidates) == ("rain", ("Rain",))
        found = self.note(reading("t2", 0.9, ("m1", 0.9)), search=search)
        assert (found.searched, found.candidates) == ("", ("Rain",))


class TestSummaries:
    """Summaries of the best topics that are quoted have up to a quarter of the budget."""

    def test_it_has_a_quarter_at_most(self) -> None:
        quotes = [(f"m{n}", 0.9) for n in range(1, 60)]
        told = reading("t1", 0.9, *quotes, summary="s" * 1_000)
        (note,) = composed(told, budget=400)
        assert 24 <= len(note.summary) <= 100

    def test_its_heading_counts_into_that_quarter(self) -> None:
        told = reading("t1", 0.9, ("m1", 0.9), summary="s" * 1_000)
        (note,) = composed(told, budget=400)
        assert HEADING + len(note.summary) == 100

    def test_all_that_are_quoted_are_summed_up_while_there_is_room(self) -> None:
        told = [
            reading(f"t{n}", 0.9 - n / 10, (f"m{n}", 0.9), summary="s" * 24) for n in range(1, 6)
        ]
        many = reading("t9", 0.3, *((f"m{n}", 0.3) for n in range(10, 90)))
        notes = composed(*told, many, budget=2_000)
        assert [n.topic for n in notes if n.summary] == ["t1", "t2", "t3", "t4", "t5"]
        notes = composed(*told, many, budget=400)
        assert [n.topic for n in notes if n.summary] == ["t1", "t2", "t3"]


class TestReadingEffect:
    def test_it_is_what_is_quoted_for_models_alone_and_what_is_not_for_them(self) -> None:
        topic = TopicNote(topic="t1", name="", score=1, quotes=("m1", "m2"), summary="It rained.")
        changed = compare_quotes([topic], ["m2", "m3"])
        assert changed == ReadingEffect(added=("m1",), kept_out=("m3",), summaries=1)

    def test_of_two_notes_what_the_second_one_added_was_not_kept_out(self) -> None:
        first = ReadingEffect(added=("m1",), kept_out=("m3",), summaries=1)
        second = ReadingEffect(added=("m3",), kept_out=("m4",))
        joined = ReadingEffect(added=("m1", "m3"), kept_out=("m4",), summaries=1)
        assert first.join(second) == joined
