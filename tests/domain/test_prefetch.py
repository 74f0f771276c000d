"""Late results: which later turn may use them, and how many are kept."""

from __future__ import annotations

from hypothesis import given, strategies as st

from topicloom.domain.curation import (
    ConversationPosition,
    Curation,
    CurationPolicy,
    CurationResult,
    TurnInterest,
    find_prefetched,
    retain_recent,
)
from topicloom.state.layers import CuratedEntry

KEY = CuratedEntry(id="lore_1", kind="lore", text="A key of jade.")
DOOR = CuratedEntry(id="lore_2", kind="lore", text="A door of oak.")
REFS = [f"{n:016x}" for n in range(20)]
TEMPLE = TurnInterest("q_1", frozenset({"temple", "key"}))
POLICY = CurationPolicy(age=3, kept=2)

interests = st.builds(
    TurnInterest,
    focus=st.sampled_from([None, "a", "b"]),
    terms=st.frozensets(st.sampled_from("stuvwxyz"), max_size=4),
)


def result(
    turn: int, *entries: CuratedEntry, count: int = 1, interest: TurnInterest = TEMPLE
) -> CurationResult:
    return CurationResult(
        ConversationPosition(count, REFS[count - 1]), interest, Curation(turn=turn, entries=entries)
    )


def served(
    *results: CurationResult,
    turn: int = 5,
    interest: TurnInterest = TEMPLE,
    refs: list[str] = REFS,
    seen: tuple[CuratedEntry, ...] = (),
) -> Curation | None:
    return find_prefetched(
        results,
        turn=turn,
        interest=interest,
        removals=(0, None),
        refs=refs,
        seen=seen,
        policy=POLICY,
    )


class TestInterest:
    @given(interests, interests)
    def test_interests_overlap_both_ways(self, one: TurnInterest, other: TurnInterest) -> None:
        assert one.overlaps(other) == other.overlaps(one)

    @given(interests)
    def test_an_interest_overlaps_with_itself_if_it_has_any(self, one: TurnInterest) -> None:
        assert one.overlaps(one) == bool(one.focus or one.terms)

    def test_by_focus_or_by_half_of_the_words(self) -> None:
        assert TEMPLE.overlaps(TurnInterest("q_1", frozenset()))
        assert TEMPLE.overlaps(TurnInterest(None, frozenset({"key", "smith"})))
        assert not TEMPLE.overlaps(TurnInterest("q_2", frozenset({"smith", "iron", "coal"})))
        assert not TEMPLE.overlaps(TurnInterest(None, frozenset()))


class TestServing:
    def test_the_newest_that_fits(self) -> None:
        other = TurnInterest("q_9", frozenset({"ship"}))
        found = served(result(2, KEY), result(3, DOOR), result(4, KEY, interest=other))
        assert found is not None
        assert (found.turn, found.entries, found.prefetched) == (3, (DOOR,), True)

    def test_a_result_that_is_too_old_is_not_used(self) -> None:
        assert served(result(2, KEY)) is not None
        assert served(result(1, KEY)) is None

    def test_not_the_own_turn_nor_one_of_the_future(self) -> None:
        assert served(result(5, KEY), result(6, KEY)) is None

    def test_only_where_the_conversation_goes_on_from_it(self) -> None:
        branch = [*REFS[:7], *("f" * 16 for _ in range(5))]
        assert served(result(4, KEY, count=7), refs=branch) is not None
        assert served(result(4, KEY, count=8), refs=branch) is None
        assert served(result(4, KEY, count=20), refs=REFS[:19]) is None

    def test_what_the_prompt_shows_is_not_told_again(self) -> None:
        found = served(result(4, KEY, DOOR), seen=(KEY,))
        assert found is not None
        assert found.entries == (DOOR,)
        assert served(result(4, KEY), seen=(KEY,)) is None


@given(st.lists(st.integers(1, 12)), st.integers(1, 12))
def test_bounded_in_number_and_age(turns: list[int], now: int) -> None:
    stay = retain_recent(turns, lambda turn: turn, now, POLICY)
    assert len(stay) <= POLICY.kept
    assert all(now - turn <= POLICY.age for turn in stay)
    young = sorted(abs(now - t) for t in turns if now - t <= POLICY.age)
    assert [abs(now - turn) for turn in stay] == young[: POLICY.kept], "the nearest"
