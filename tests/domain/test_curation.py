"""Choosing among candidates: weights, one row of all sources, what the prompt shows already."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from topicloom.domain.curation import (
    Candidate,
    collapse_whitespace,
    drop_shown,
    merge_candidates,
    scale_weights,
)
from topicloom.domain.plan import DomainWeights, SearchIntent
from topicloom.domain.recall_source import BUILT_IN_KINDS
from topicloom.state.layers import CuratedEntry

KINDS = BUILT_IN_KINDS

shares = st.floats(0, 1)
candidates = st.builds(
    Candidate,
    id=st.sampled_from([f"lore_{n}" for n in range(9)]),
    kind=st.sampled_from(KINDS),
    text=st.just("…"),
    score=shares,
)


def candidate(name: str, score: float = 0.5, kind: str = "lore", text: str = "") -> Candidate:
    return Candidate(id=name, kind=kind, score=score, text=text or name)


def weigh(**given: float) -> SearchIntent:
    """A search by these weights, and by no other."""
    return SearchIntent(
        weights=DomainWeights(**dict.fromkeys(DomainWeights.model_fields, 0) | given)
    )


class TestWeights:
    def test_no_kind_is_left_out(self) -> None:
        assert set(scale_weights(SearchIntent(), {})) == set(KINDS)

    def test_the_strongest_counts_one(self) -> None:
        weights = scale_weights(weigh(narrative=0.2, lore=0.4), {})
        assert "event" not in weights
        assert weights["lore"] == 1.0
        assert weights["narrative"] == 0.5

    def test_the_past_raises_what_was_told(self) -> None:
        intent = weigh(narrative=0.4, lore=0.4, event=0.4)
        now, past = (
            scale_weights(intent, {}),
            scale_weights(intent.model_copy(update={"when": "past"}), {}),
        )
        assert now["narrative"] == now["lore"] == 1.0
        assert past["narrative"] == 1.0
        assert past["lore"] == past["event"] == 0.5

    def test_nothing_wanted_is_nothing(self) -> None:
        assert not scale_weights(weigh(), {})

    @given(narrative=shares, lore=shares, event=shares, factor=st.floats(0.25, 1))
    def test_only_relations_count(
        self, narrative: float, lore: float, event: float, factor: float
    ) -> None:
        given_ = {"narrative": narrative, "lore": lore, "event": event}
        whole = scale_weights(weigh(**given_), {})
        less = {k: v * factor for k, v in given_.items()}
        scaled = scale_weights(weigh(**less), {})
        assert all(scaled[k] == pytest.approx(whole[k]) for k in scaled)


class TestMerged:
    @pytest.mark.slow
    @given(found=st.lists(st.lists(candidates)), limit=st.integers(1, 6))
    def test_one_row_best_first_each_once(self, found: list[list[Candidate]], limit: int) -> None:
        row = merge_candidates(found, dict.fromkeys(KINDS, 1.0), limit)
        assert len(row) <= limit
        assert [c.score for c in row] == sorted((c.score for c in row), reverse=True)
        assert len({c.id for c in row}) == len(row)
        assert {c.id for c in row} <= {c.id for cs in found for c in cs}

    def test_weights_decide_between_sources(self) -> None:
        lore, told = candidate("lore_1", 0.6), candidate("narrative_t1", 0.5, "narrative")
        assert [
            c.id for c in merge_candidates([[lore], [told]], {"lore": 0.5, "narrative": 1}, 9)
        ] == [
            "narrative_t1",
            "lore_1",
        ]


class TestUnseen:
    def test_what_is_shown_is_left_out(self) -> None:
        shown = [CuratedEntry(id="lore_1", kind="lore", text="A key\nof jade, and more of it")]
        found = [candidate("lore_1", text="A key of jade…"), candidate("lore_2")]
        assert [c.id for c in drop_shown(found, shown)] == ["lore_2"]

    def test_what_has_changed_since_counts_as_new(self) -> None:
        shown = [CuratedEntry(id="event_q", kind="event", text="status: waiting")]
        assert drop_shown([candidate("event_q", text="status: done")], shown)

    @given(st.text())
    def test_a_text_in_one_line(self, text: str) -> None:
        assert collapse_whitespace(collapse_whitespace(text)) == collapse_whitespace(text)
