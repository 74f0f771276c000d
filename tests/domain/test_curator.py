"""The curator: what a turn gets in time, what it gets late, and what never happens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, wait
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
from curations import PATIENCE, Texts, Waiting, lore, ready, refs, work
from hypothesis import given, strategies as st
from tables import each_row

from topicloom import Answer, Call, LocalRole, Selection, SelectRequest, TurnPlan
from topicloom.domain.curation import Curation
from topicloom.domain.curator import CurationOrigin, Curator
from topicloom.domain.plan import DomainWeights, SearchIntent
from topicloom.state.layers import CuratedEntry
from topicloom.testing import FailingRole, FixedRole

DEADLINE = 0.05


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    """A selector that is let go at the end of the test."""
    selector = Waiting()
    yield selector
    selector.free.set()


def done(future: Future[Curation] | None) -> Curation:
    """What a curation came to."""
    assert future is not None
    return future.result(PATIENCE)


def made(selector: Any, *sources: Texts, **more: Any) -> Curation:
    curator = Curator(selector, DEADLINE)
    return done(curator.begin(work(1, *sources, **more)))


def collected(
    curator: Curator, turn: int, future: Future[Curation] | None = None, **more: Any
) -> tuple[Curation, list[Call]]:
    """What a turn gets."""
    return curator.collect(work(turn, **more), future, refs(20), 0.0)


class TestCuration:
    def test_only_the_picked_are_shown(self) -> None:
        source = lore("lore_1", "lore_2", "lore_3")
        result = made(ready(), source)
        assert [e.id for e in result.entries] == ["lore_1", "lore_2"]
        assert [e.text for e in result.entries] == ["All about lore_1.", "All about lore_2."]
        assert (result.rationale, result.model, result.candidates) == ("why", "waiting", 3)

    def test_the_selector_sees_the_best_of_all_sources(self) -> None:
        selector = ready()
        told = Texts("narrative", {"narrative_t1": "They had a key."})
        plan = TurnPlan(search=SearchIntent(weights=DomainWeights(narrative=1, lore=0.1, event=0)))
        event = Texts("event", {"event_q": "Find the key."})
        made(selector, lore("lore_1"), told, event, plan=plan)
        assert [c.id for c in selector.requests[0].candidates] == ["narrative_t1", "lore_1"]
        assert event.queries == [], "a kind of no weight is not searched"

    def test_what_the_prompt_shows_is_no_candidate(self) -> None:
        selector = ready()
        seen = (CuratedEntry(id="lore_1", kind="lore", text="All about lore_1."),)
        result = made(selector, lore("lore_1", "lore_2"), seen=seen)
        assert [e.id for e in result.entries] == ["lore_2"]

    def test_nobody_is_asked_about_nothing(self) -> None:
        selector = ready()
        assert made(selector, lore()) == Curation()
        assert selector.requests == []

    @each_row("broken", [FailingRole(), FixedRole(None), FixedRole("lore_2")])
    def test_a_selector_that_fails_leaves_the_best_three(self, broken: Any) -> None:
        source = lore(*(f"lore_{n}" for n in range(6)))
        result = made(broken, source)
        assert [e.id for e in result.entries] == ["lore_0", "lore_1", "lore_2"]
        assert (result.model, bool(result.calls[0].failure)) == ("", True)

    def test_a_selector_past_its_own_deadline_is_one_that_fails(self, waiting: Waiting) -> None:
        waiting.deadline = 0.01
        result = made(waiting, lore("lore_1", "lore_2", "lore_3", "lore_4"))
        assert len(result.entries) == 3
        assert "no answer within 0.01 s" in str(result.calls[0].failure)

    def test_ids_of_nothing_and_too_many_are_dropped(self) -> None:
        many = FixedRole(Selection(("lore_9", *(f"lore_{n}" for n in range(8)), "lore_1")))
        result = made(many, lore(*(f"lore_{n}" for n in range(8))))
        assert [e.id for e in result.entries] == [f"lore_{n}" for n in range(5)]

    def test_a_source_that_fails_costs_what_it_would_have_found(self) -> None:
        broken = Texts("narrative", {}, ConnectionError("gone"))
        result = made(ready(), lore("lore_1"), broken)
        assert [e.id for e in result.entries] == ["lore_1"]
        assert result.failures == ("narrative: ConnectionError: gone",)

    def test_long_texts_are_shown_in_part(self) -> None:
        result = made(ready(), Texts("lore", {"lore_1": "word " * 5_000}))
        (entry,) = result.entries
        assert len(entry.text) < 2_100
        assert entry.text.endswith("…")


class TestInTime:
    def test_a_turn_gets_its_own_result_if_it_is_in_time(self) -> None:
        curator = Curator(ready(), DEADLINE)
        future = curator.begin(work(1))
        done(future)
        result, calls = collected(curator, 1, future)
        assert len(result.entries) == 2
        assert [(c.role, c.failure) for c in calls] == [("selector", None), ("curation", None)]

    def test_a_turn_that_is_taken_again_asks_nobody_again(self) -> None:
        selector = ready()
        curator = Curator(selector, DEADLINE)
        first = curator.begin(work(1))
        assert curator.begin(work(1)) is first
        done(first)
        assert curator.begin(work(1)) is first
        assert len(selector.requests) == 1

    def test_a_failed_source_stands_in_the_receipt(self) -> None:
        curator = Curator(ready(), DEADLINE)
        broken = Texts("narrative", {}, OSError("disk"))
        future = curator.begin(work(1, broken))
        done(future)
        _, calls = collected(curator, 1, future)
        assert calls[-1].failure == "narrative: OSError: disk"


class TestLate:
    def test_the_turn_goes_on_with_the_best_of_the_search(self, waiting: Waiting) -> None:
        curator = Curator(waiting, DEADLINE)
        future = curator.begin(work(1, lore(*(f"lore_{n}" for n in range(5)))))
        assert waiting.asked.wait(PATIENCE)
        result, calls = collected(curator, 1, future)
        assert waiting.answered == 0, "the turn is over before the selector"
        assert [e.id for e in result.entries] == ["lore_0", "lore_1", "lore_2"]
        assert (result.rationale, result.model) == ("", "")
        assert [(c.role, c.failure) for c in calls] == [("curation", "not done within 0.05 s")]
        assert calls[0].remarks == ("the best of the search stand in",)

    def test_without_anything_if_the_search_is_late_too(self) -> None:
        free = Event()

        class Slow(dict[Any, Any]):
            def items(self) -> Any:
                assert free.wait(PATIENCE)
                return super().items()

        curator = Curator(ready(), DEADLINE)
        late = curator.begin(replace(work(1), sources=Slow()))
        assert collected(curator, 1, late)[0] == Curation()
        free.set()
        done(late)

    def test_the_next_turn_uses_it(self, waiting: Waiting) -> None:
        curator = Curator(waiting, DEADLINE)
        late = curator.begin(work(1))
        collected(curator, 1, late)
        waiting.free.set()
        done(late)
        waiting.free.clear()
        result, calls = collected(curator, 2, curator.begin(work(2)))
        assert [e.id for e in result.entries] == ["lore_1", "lore_2"]
        assert calls[0].role == "selector"
        assert calls[0].remarks == ("asked for by turn 1",)
        assert calls[1].remarks[0] == "lore_1, asked for by turn 1"
        again, more = collected(curator, 3, None)
        assert again.entries == result.entries
        assert [c.role for c in more] == ["curation"], "a call is in one receipt only"

    def test_not_if_the_turn_has_its_own(self, waiting: Waiting) -> None:
        curator = Curator(waiting, DEADLINE)
        late = curator.begin(work(1))
        collected(curator, 1, late)
        waiting.free.set()
        done(late)
        own = curator.begin(work(2, lore("lore_7")))
        done(own)
        result, _ = collected(curator, 2, own)
        assert [e.id for e in result.entries] == ["lore_7"]

    def test_not_on_another_branch(self) -> None:
        curator = Curator(ready(), DEADLINE)
        done(curator.begin(work(3)))
        branch = [*refs(2), "f" * 16, "e" * 16]
        other, _ = curator.collect(work(4, head="e" * 16), None, branch, 0.0)
        assert other.entries == ()
        own, _ = curator.collect(work(4), None, refs(4), 0.0)
        assert own.entries

    def test_not_once_anything_was_removed(self) -> None:
        curator = Curator(ready(), DEADLINE)
        done(curator.begin(work(1)))
        for removals in ((1, None), (0, "edited")):
            assert collected(curator, 2, removals=removals)[0].entries == ()
        assert collected(curator, 2)[0].entries

    def test_not_in_another_session(self) -> None:
        curator = Curator(ready(), DEADLINE)
        done(curator.begin(work(1, session="one")))
        assert collected(curator, 2, session="two")[0].entries == ()
        assert collected(curator, 2, session="one")[0].entries

    def test_not_about_something_else(self) -> None:
        curator = Curator(ready(), DEADLINE)
        done(curator.begin(work(1)))
        assert collected(curator, 2, focus="q", terms=frozenset({"boat"}))[0].entries == ()

    def test_without_what_the_prompt_shows_already(self) -> None:
        curator = Curator(ready(), DEADLINE)
        first, second = done(curator.begin(work(1))).entries
        assert collected(curator, 2, seen=(first,))[0].entries == (second,)
        assert collected(curator, 2, seen=(first, second))[0].entries == ()

    def test_the_newest_that_fits(self) -> None:
        curator = Curator(ready(), DEADLINE)
        done(curator.begin(work(1)))
        done(curator.begin(work(2, lore("lore_7"))))
        done(curator.begin(work(3, lore("lore_9"), terms=frozenset({"boat"}))))
        assert [e.id for e in collected(curator, 4)[0].entries] == ["lore_7"]

    def test_what_failed_serves_nobody(self) -> None:
        class Broken(dict[Any, Any]):
            def items(self) -> Any:
                raise OSError("disk")

        curator = Curator(ready(), DEADLINE)
        future = curator.begin(replace(work(1), sources=Broken()))
        assert future is not None
        wait([future], PATIENCE)
        _, calls = collected(curator, 1, future)
        assert calls[-1].failure == "OSError: disk"
        assert collected(curator, 2)[0].entries == ()


class TestBounds:
    def test_no_more_than_some_at_once(self, waiting: Waiting) -> None:
        curator = Curator(waiting, DEADLINE)
        begun = [curator.begin(work(n)) for n in range(1, 7)]
        assert [f is not None for f in begun] == [True] * 4 + [False] * 2
        assert curator.begin(work(1, session="other")) is not None
        assert "too many" in str(collected(curator, 6, begun[5])[1][-1].failure)

    def test_nor_in_the_whole_process(self, waiting: Waiting) -> None:
        curator = Curator(waiting, DEADLINE)
        begun = [curator.begin(work(1, session=str(n))) for n in range(20)]
        assert sum(f is not None for f in begun) == 16

    def test_old_results_are_dropped(self) -> None:
        curator = Curator(ready(), DEADLINE)
        done(curator.begin(work(1)))
        for turn in range(2, 6):
            done(curator.begin(work(turn, terms=frozenset({"boat"}))))
        assert collected(curator, 6)[0].entries == ()

    def test_those_of_a_branch_that_was_left_take_no_place(self, waiting: Waiting) -> None:
        curator = Curator(waiting, DEADLINE)
        waiting.free.set()
        for turn in (17, 18, 19, 20):
            done(curator.begin(work(turn)))
        waiting.free.clear()
        late = curator.begin(work(2))
        waiting.free.set()
        done(late)
        waiting.free.clear()
        assert collected(curator, 3, curator.begin(work(3)))[0].entries

    @pytest.mark.slow
    def test_sessions_that_nobody_asks_for_are_dropped(self) -> None:
        curator = Curator(ready(), DEADLINE)
        for number in range(1_010):
            done(curator.begin(work(1, lore(), session=str(number))))
        assert len(curator._jobs) == 1_000


@pytest.mark.slow
def test_the_interpreter_does_not_wait_for_a_selector() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _ENDS, *sys.path], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "asked", "")


class Forever(LocalRole[SelectRequest, Selection]):
    """Never answers."""

    deadline: float | None = 600.0

    def __init__(self) -> None:
        self.asked = Event()

    def call(self, request: SelectRequest) -> Answer[Selection]:
        self.asked.set()
        Event().wait()
        raise AssertionError


_ENDS = """
import sys
sys.path[:] = sys.argv[1:]
from curations import work
from test_curator import DEADLINE, Curator, Forever
selector = Forever()
curator = Curator(selector, DEADLINE)
curator.begin(work(1))
assert selector.asked.wait(20)
print("asked")
"""


origins = st.builds(
    CurationOrigin,
    session=st.just("s"),
    turn=st.integers(1, 9),
    head=st.sampled_from(refs(9)),
    removals=st.just((0, None)),
    basis=st.just(""),
    focus=st.sampled_from([None, "a", "b"]),
    terms=st.frozensets(st.sampled_from("stuvwxyz"), max_size=4),
)


class TestOrigin:
    @given(origins, origins)
    def test_only_young_ones_of_the_same_branch_about_the_same(
        self, one: CurationOrigin, later: CurationOrigin
    ) -> None:
        if one.may_serve(later, refs(4)):
            assert one.head in refs(4)
            assert 0 < later.turn - one.turn <= 5
            assert one.terms & later.terms or one.focus == later.focus is not None

    @given(origins)
    def test_it_serves_the_next_turn_if_it_is_about_anything(self, one: CurationOrigin) -> None:
        later = replace(one, turn=one.turn + 1)
        assert one.may_serve(later, refs(9)) == bool(one.focus or one.terms)

    @each_row(
        ("focus", "terms", "serves"),
        [
            ("q_1", set(), True),
            (None, {"key", "smith"}, True),
            ("q_2", {"smith", "iron", "coal"}, False),
            (None, set(), False),
        ],
    )
    def test_by_focus_or_by_half_of_the_words(
        self, focus: str | None, terms: set[str], serves: bool
    ) -> None:
        temple = work(1, focus="q_1").origin
        later = work(2, focus=focus, terms=frozenset(terms)).origin
        assert temple.may_serve(later, refs(2)) == serves
