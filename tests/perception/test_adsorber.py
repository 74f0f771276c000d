"""The boundary adsorber: where topics begin, when a message arrives and looking back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicloom.perception.adsorber import AdsorberPolicy, SemanticAdsorber, block_vectors
from topicloom.perception.hashing import HashingEmbedder
from topicloom.prompts.phrases import cue_list
from topicloom.state.blocks import LogicalBlock, blocks_of
from topicloom.state.records import Record

TEA = [
    "green tea and black tea",
    "how hot should the tea be",
    "a pot for the tea",
    "tea from China",
]
CARS = [
    "a car with four doors",
    "the car makes a noise",
    "new tyres for the car",
    "sell the old car",
]
ADSORBER = SemanticAdsorber(HashingEmbedder(), cue_list("fillers"))


def said(
    text: str, *, number: int = 99, time: str = "2026-03-02T10:00:00", opens: bool = False
) -> Record:
    """A message of the user."""
    return Record(seq=number, role="user", text=text, time=time, opens=opens)


def blocks(texts: Sequence[str], opening: Sequence[int] = ()) -> list[LogicalBlock]:
    """A block a text, each with a reply about the same."""
    records: list[Record] = []
    for place, text in enumerate(texts):
        records.append(said(text, number=2 * place + 1, opens=place in opening))
        records.append(
            Record(seq=2 * place + 2, role="assistant", text=text, time="2026-03-02T09:59:00")
        )
    return blocks_of(records)


class TestOpens:
    def test_a_message_about_the_same_continues(self) -> None:
        assert not ADSORBER.opens(blocks(TEA[:3]), said(TEA[3]))

    def test_a_message_about_something_else_opens(self) -> None:
        assert ADSORBER.opens(blocks(TEA), said("Quantum physics explains lasers"))

    def test_the_first_message_opens_nothing(self) -> None:
        assert not ADSORBER.opens([], said(TEA[0]))

    @pytest.mark.parametrize("filler", ["ok", "Thanks!", "好的", "", "  ", "?", "go on"])
    def test_a_filler_continues(self, filler: str) -> None:
        assert not ADSORBER.opens(blocks(TEA), said(filler))

    def test_fillers_are_not_compared_with(self) -> None:
        told = blocks([*TEA, "ok", "thanks", "yes", "go on"])
        assert not ADSORBER.opens(told, said("a pot of green tea please"))
        assert not ADSORBER.opens(blocks(["ok", "thanks"]), said(CARS[0]))

    def test_only_the_last_blocks_count(self) -> None:
        policy = AdsorberPolicy(memory=1)
        short = SemanticAdsorber(HashingEmbedder(), cue_list("fillers"), policy)
        mixed = blocks([TEA[0], "Quantum physics explains lasers"])
        assert short.opens(mixed, said("green tea, black tea"))
        assert not ADSORBER.opens(mixed, said("green tea, black tea"))

    def test_after_a_pause_a_message_has_to_be_nearer(self) -> None:
        faint = "some tea, or a long walk by the river with the old dog and my uncle Bertram"
        told = blocks([TEA[0]])
        policy = AdsorberPolicy(low=0.12, pause_factor=8)
        adsorber = SemanticAdsorber(HashingEmbedder(), cue_list("fillers"), policy)
        assert not adsorber.opens(told, said(faint))
        assert adsorber.opens(told, said(faint, time="2026-03-03T10:00:00"))

    def test_times_that_cannot_be_compared_are_no_pause(self) -> None:
        assert not ADSORBER.opens(blocks(TEA), said(TEA[1], time="some day"))
        assert not ADSORBER.opens(blocks(TEA), said(TEA[1], time="2027-01-01T00:00:00+02:00"))


class TestSegments:
    def test_a_segment_begins_where_a_topic_was_seen_to_begin(self) -> None:
        assert ADSORBER.segments(blocks([*TEA, *CARS], opening=[4])) == [0] * 4 + [1] * 4

    def test_the_first_block_begins_the_first_segment(self) -> None:
        assert ADSORBER.segments([]) == []
        assert ADSORBER.segments(blocks(TEA[:2], opening=[0])) == [0, 0]


@given(
    st.lists(st.sampled_from([*TEA, *CARS, "ok", "", "西红柿怎么种"]), max_size=12),
    st.sets(st.integers(0, 12)),
)
def test_every_block_has_a_segment_and_they_count_up(texts: list[str], opening: set[int]) -> None:
    labels = ADSORBER.segments(blocks(texts, opening=sorted(opening)))
    assert len(labels) == len(texts)
    assert labels[:1] in ([], [0])
    assert all(b - a in (0, 1) for a, b in pairwise(labels))


def test_block_vectors_are_unit_rows_in_order() -> None:
    embedder = HashingEmbedder()
    together = block_vectors(blocks([TEA[0], CARS[0]]), embedder)
    assert together.shape == (2, embedder.dimension)
    alone = block_vectors(blocks([CARS[0]]), embedder)
    assert together[1] == pytest.approx(alone[0], abs=1e-5)
