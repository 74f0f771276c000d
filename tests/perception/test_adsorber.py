"""The boundary adsorber: where topics begin, when a message arrives and looking back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicloom.perception.adsorber import AdsorberPolicy, SemanticAdsorber, anchor_text, gap_depths
from topicloom.perception.embedder import Vectors, unit_rows
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


def blocks(texts: Sequence[str]) -> list[LogicalBlock]:
    """A block a text, each with a reply that says nothing of it."""
    records: list[Record] = []
    for text in texts:
        for role, said in (("user", text), ("assistant", "Indeed.")):
            records.append(
                Record.model_validate(
                    {"seq": len(records) + 1, "role": role, "text": said, "time": ""}
                )
            )
    return blocks_of(records)


class TestOpens:
    def test_a_message_about_the_same_continues(self) -> None:
        assert not ADSORBER.opens(blocks(TEA[:3]), TEA[3])

    def test_a_message_about_something_else_opens(self) -> None:
        assert ADSORBER.opens(blocks(TEA), "Quantum physics explains lasers")

    def test_the_first_message_opens_nothing(self) -> None:
        assert not ADSORBER.opens([], TEA[0])

    @pytest.mark.parametrize("filler", ["ok", "Thanks!", "好的", "", "  ", "?", "go on"])
    def test_a_filler_continues(self, filler: str) -> None:
        assert not ADSORBER.opens(blocks(TEA), filler)

    def test_fillers_are_no_anchors(self) -> None:
        assert not ADSORBER.opens(blocks([*TEA, "ok", "thanks", "yes", "go on"]), "more tea please")
        assert not ADSORBER.opens(blocks(["ok", "thanks"]), CARS[0])

    def test_only_the_last_blocks_count(self) -> None:
        policy = AdsorberPolicy(memory=1)
        short = SemanticAdsorber(HashingEmbedder(), cue_list("fillers"), policy)
        mixed = blocks([TEA[0], "Quantum physics explains lasers"])
        assert short.opens(mixed, TEA[1])
        assert not ADSORBER.opens(mixed, TEA[1])


class TestSegments:
    def test_a_change_of_topic_is_a_boundary(self) -> None:
        labels = ADSORBER.segments(blocks([*TEA, *CARS]))
        assert labels == [0] * 4 + [1] * 4

    def test_few_blocks_are_one_segment(self) -> None:
        assert ADSORBER.segments([]) == []
        assert ADSORBER.segments(blocks(TEA[:1])) == [0]
        assert ADSORBER.segments(blocks([TEA[0], CARS[0]])) == [0, 0]

    def test_fillers_belong_to_what_they_follow(self) -> None:
        labels = ADSORBER.segments(blocks([*TEA, "ok", "thanks", *CARS]))
        assert labels[:6] == [0] * 6
        assert labels[-1] == 1

    def test_equal_messages_are_one_segment(self) -> None:
        assert set(ADSORBER.segments(blocks([TEA[0]] * 6))) == {0}


@given(st.lists(st.sampled_from([*TEA, *CARS, "ok", "", "好的", "西红柿怎么种"]), max_size=12))
def test_every_block_has_a_segment_and_they_count_up(texts: list[str]) -> None:
    labels = ADSORBER.segments(blocks(texts))
    assert len(labels) == len(texts)
    assert labels[:1] in ([], [0])
    assert all(b - a in (0, 1) for a, b in pairwise(labels))
    assert labels == ADSORBER.segments(blocks(texts)), "the same blocks, the same segments"


def test_depth_is_greatest_in_the_valley() -> None:
    rows = np.repeat(np.eye(2, 4, dtype=np.float32), 4, axis=0)
    depths = gap_depths(rows, 2)
    assert depths.shape == (7,)
    assert int(depths.argmax()) == 3


@given(
    st.lists(st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3), min_size=2, max_size=8)
)
def test_depths_are_never_negative(rows: list[list[float]]) -> None:
    vectors: Vectors = unit_rows(np.array(rows, dtype=np.float32))
    depths = gap_depths(vectors, 2)
    assert depths.shape == (len(rows) - 1,)
    assert (depths >= -1e-6).all()


def test_the_anchor_is_what_the_user_said() -> None:
    (block,) = blocks(["Hello"])
    assert anchor_text(block) == "Hello"
