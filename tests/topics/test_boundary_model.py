"""Where topics begin: what a probability may depend on, and what the packaged weights know."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from topicloom.search.encoders import default_embedder
from topicloom.topics.boundary_cues import Utterance
from topicloom.topics.boundary_features import WINDOW, band_of, online_features
from topicloom.topics.boundary_model import load_boundary_model
from topicloom.topics.boundary_policy import Granularity

NAMES = st.sampled_from([None, "Ann", "Bob"])
ROLES = st.sampled_from([None, "user", "assistant", "tool"])
TEXTS = st.sampled_from(
    [
        "",
        "Which tea goes with cake?",
        "It is green.",
        "Sell the car for 5000",
        "我想找一家酒店",
        "它在哪里？",
    ]
)
CONVERSATIONS = st.lists(
    st.builds(Utterance, role=ROLES, speaker=NAMES, text=TEXTS),
    min_size=1,
    max_size=60,
)


def vectors_of(said: Sequence[Utterance]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return default_embedder().embed([s.text for s in said])


def online(said: Sequence[Utterance]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What the model says of each message as it arrives."""
    vectors, ends = vectors_of(said), range(1, len(said) + 1)
    return np.array([load_boundary_model().newest(said[:end], vectors[:end]) for end in ends])


def online_at_once(said: Sequence[Utterance]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The same as one computation over the whole conversation, without looking at its end alone."""
    features = online_features(said, band_of(vectors_of(said), load_boundary_model().learned))
    return np.array([1.0, *load_boundary_model().nets["online"].probabilities(features)[1:]])


def chat(*texts: str) -> list[Utterance]:
    """User and assistant in turns."""
    roles = ("user", "assistant")
    return [Utterance(roles[place % 2], None, text) for place, text in enumerate(texts)]


def threshold(mode: str, granularity: Granularity = "auto") -> float:
    return load_boundary_model().thresholds[mode][granularity]


class TestOnline:
    @pytest.mark.slow
    @given(CONVERSATIONS)
    @settings(deadline=None, max_examples=40)
    def test_the_last_25_messages_are_enough(self, said: list[Utterance]) -> None:
        everything = online_at_once(said)
        part = online_at_once(said[-WINDOW - 1 :])
        assert everything[-1] == pytest.approx(part[-1], abs=1e-5)
        newest = load_boundary_model().newest(said, vectors_of(said))
        assert newest == pytest.approx(everything[-1], abs=1e-5)

    @given(CONVERSATIONS, st.integers(1, 59))
    @settings(deadline=None, max_examples=40)
    def test_what_comes_later_changes_nothing(self, said: list[Utterance], cut: int) -> None:
        early = online_at_once(said[:cut])
        assert early == pytest.approx(online_at_once(said)[:cut], abs=1e-5)

    @given(CONVERSATIONS)
    @settings(deadline=None, max_examples=20)
    def test_probabilities_are_probabilities(self, said: list[Utterance]) -> None:
        for found in (online(said), load_boundary_model().retrospective(said, vectors_of(said))):
            assert found.shape == (len(said),)
            assert found[0] == 1
            assert np.all((found >= 0) & (found <= 1))

    def test_nothing_said_has_no_boundary(self) -> None:
        nothing = np.zeros((0, default_embedder().dimension), dtype=np.float32)
        assert load_boundary_model().retrospective([], nothing).shape == (0,)

    @pytest.mark.slow
    def test_long_conversations_take_the_same_way_in_blocks(self) -> None:
        said = chat(*[f"message {n} about subject {n // 40}" for n in range(300)])
        vectors = vectors_of(said)
        everything = online_at_once(said)
        for end in (127, 128, 129, 150, 256, 257, 300):
            assert load_boundary_model().newest(said[:end], vectors[:end]) == pytest.approx(
                everything[end - 1], abs=1e-5
            )


class TestPackagedWeights:
    TRIP = (
        "I need a train to Cambridge on Friday evening.",
        "There are six trains. When would you like to arrive?",
        "By half past seven at the latest.",
        "The 17:40 train arrives at 18:28. Shall I book it?",
    )
    FOOD = (
        "What is the weather going to be like in Oslo next week?",
        "It will be cold with a little snow on Tuesday in Oslo.",
    )

    def test_a_new_subject_is_likelier_to_begin_than_an_answer(self) -> None:
        said = chat(*self.TRIP, *self.FOOD)
        found = online(said)
        assert found[4] == max(found[1:])
        assert list((found >= threshold("online")).nonzero()[0]) == [0, 4]

    def test_looking_back_finds_it_too(self) -> None:
        said = chat(*self.TRIP, *self.FOOD)
        found = load_boundary_model().retrospective(said, vectors_of(said))
        assert list((found >= threshold("retrospective")).nonzero()[0]) == [0, 4]

    def test_coarse_finds_no_more_than_auto_and_fine_no_less(self) -> None:
        said = chat(*self.TRIP, *self.FOOD, *self.TRIP[::-1])
        found = online(said)
        coarse = found >= threshold("online", "coarse")
        auto = found >= threshold("online", "auto")
        fine = found >= threshold("online", "fine")
        assert np.all(coarse <= auto)
        assert np.all(auto <= fine)
