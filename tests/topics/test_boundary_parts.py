"""The parts of the boundary features, each against the plain way to compute it."""

from __future__ import annotations

from weakref import ref

import numpy as np
import pytest
from tables import each_row

from topicloom.search.embedder import unit_rows
from topicloom.topics.boundary_cues import (
    CUE_NAMES,
    Utterance,
    asking_side,
    cues_of,
    novelty,
    same_side,
)
from topicloom.topics.boundary_features import ONLINE_NAMES, REACH, online_features
from topicloom.topics.retrospective import RETROSPECTIVE_NAMES, retrospective_features
from topicloom.topics.similarity import Band, lagged, mean_known


def by(*sides: str | None) -> list[Utterance]:
    """Messages by role where it is one, else by speaker."""
    roles = ("user", "assistant")
    return [Utterance(s if s in roles else None, None if s in roles else s, "x") for s in sides]


class TestBand:
    ROWS = unit_rows(np.random.default_rng(5).normal(size=(300, 16)).astype(np.float32))
    BAND = Band.of([ROWS, ROWS[:, :8]], 24)

    @each_row(("row", "lag"), [(5, 3), (130, 24), (299, 1)])
    def test_products_are_those_of_the_rows(self, row: int, lag: int) -> None:
        expected = float(self.ROWS[row] @ self.ROWS[row - lag])
        assert self.BAND.before(24)[0, row, lag - 1] == pytest.approx(expected, abs=1e-6)
        other = float(self.ROWS[row, :8] @ self.ROWS[row - lag, :8])
        assert self.BAND.before(24)[1, row, lag - 1] == pytest.approx(other, abs=1e-6)

    def test_what_is_not_there_is_unknown(self) -> None:
        assert np.isnan(self.BAND.before(3)[:, 0]).all()
        assert np.isnan(self.BAND.before(24)[0, 2]).sum() == 22

    @each_row("first", [0, 1, 150, 299])
    def test_the_last_rows_are_as_among_all(self, first: int) -> None:
        np.testing.assert_array_equal(self.BAND.before(24, first), self.BAND.before(24)[:, first:])
        np.testing.assert_allclose(
            self.BAND.lengths_before((3, 24), first),
            self.BAND.lengths_before((3, 24))[:, :, first:],
        )

    @each_row(("start", "middle", "stop"), [(0, 4, 9), (120, 130, 140), (9, 10, 11)])
    def test_a_gap_compares_means(self, start: int, middle: int, stop: int) -> None:
        before, after = self.ROWS[start:middle], self.ROWS[middle:stop]
        gap = self.BAND.gap(*(np.array([place]) for place in (start, middle, stop)))
        a, b = before.mean(axis=0), after.mean(axis=0)
        cosine = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
        assert gap.cosine[0, 0] == pytest.approx(cosine, abs=1e-5)
        assert gap.mean_across[0, 0] == pytest.approx(float((before @ after.T).mean()), abs=1e-5)
        if len(after) > 1:
            pairs = (after @ after.T)[~np.eye(len(after), dtype=bool)]
            inside = float(pairs.mean() - (before @ after.T).mean())
            assert gap.cohesion[1][0, 0] == pytest.approx(inside, abs=1e-5)

    def test_messages_without_a_vector_are_like_nothing(self) -> None:
        band = Band.of([np.zeros((4, 3), dtype=np.float32)], 2)
        places = np.array([0]), np.array([2]), np.array([3])
        assert band.gap(*places).cosine[0, 0] == 0


class TestLags:
    def test_values_of_messages_before(self) -> None:
        found = lagged(np.array([1.0, 2.0, 3.0]), 2)
        assert np.isnan(found[0]).all()
        assert found[2].tolist() == [2, 1]
        assert lagged(np.array([1.0, 2.0, 3.0]), 2, 2).tolist() == [[2, 1]]

    def test_means_pass_over_the_unknown(self) -> None:
        found = mean_known(np.array([[1.0, np.nan, 3.0], [np.nan] * 3]))
        assert found[0] == 2
        assert np.isnan(found[1])


class TestSides:
    def test_without_names_two_speakers_alternate(self) -> None:
        assert same_side(by(*[None] * 5), 4)[4].tolist() == [False, True, False, True]

    def test_names_tell_who_is_on_the_same_side(self) -> None:
        assert same_side(by("A", "A", "B", "A"), 3)[3].tolist() == [False, True, True]

    def test_the_user_is_the_side_that_asks(self) -> None:
        assert asking_side(by("assistant", "user"), 24).tolist() == [-1, 1]

    def test_otherwise_the_one_who_began_as_far_as_that_is_seen(self) -> None:
        found = asking_side(by(*["A", "B"] * 15), 24)
        assert found[:4].tolist() == [1, -1, 1, -1]
        assert not found[24:].any()


class Said(str):
    """A text of which can be seen whether somebody keeps it."""


class TestCues:
    @each_row(
        ("text", "name", "value"),
        [
            ("Where is it", "asks", 1),
            ("多少钱", "asks", 1),
            ("I see.", "asks", 0),
            ("Really?", "ends_asking", 1),
            ("But why", "leans", 1),
            ("Butter", "leans", 0),
            ("那家店", "leans", 1),
            ("Does it have one", "points", 2 / 3),
            ("room 12", "digits", 2 / 6),
        ],
    )
    def test_each_cue_is_found_in_its_sentence(self, text: str, name: str, value: float) -> None:
        assert cues_of(text)[CUE_NAMES.index(name)] == pytest.approx(value)

    def test_greetings_and_thanks_are_no_cue(self) -> None:
        for text in ("hello", "goodbye", "thanks"):
            kinds = dict(zip(CUE_NAMES, cues_of(text), strict=True))
            assert not any(kinds[n] for n in ("asks", "ends_asking", "leans", "points", "digits"))

    def test_no_text_is_kept(self) -> None:
        said = Said("green tea " * 1_000)
        kept = ref(said)
        assert cues_of(said) == cues_of(str(said))
        assert len(novelty([said, said], 1)) == 2
        del said
        assert kept() is None

    def test_words_that_were_not_heard_before(self) -> None:
        new, echoed = novelty(["green tea", "green car", "the"], 6).T
        assert (new[1], echoed[1]) == (0.5, 0.5)
        assert np.isnan(new[[0, 2]]).all()


WORDS = ("Which tea is it?", "green tea", "", "那家酒店在哪里", "Sell the car for 5000")


class TestFeatures:
    SAID = tuple(
        Utterance((None, "user", "assistant")[n % 3], None, WORDS[n * n % 5]) for n in range(60)
    )
    VECTORS = np.random.default_rng(6).normal(size=(60, 16)).astype(np.float32)
    BAND = Band.of([unit_rows(VECTORS), unit_rows(VECTORS[:, :8])], REACH)

    @each_row("first", [0, 1, 20, 59])
    def test_the_last_messages_are_as_among_all(self, first: int) -> None:
        everything = online_features(self.SAID, self.BAND)
        part = online_features(self.SAID, self.BAND, first)
        np.testing.assert_allclose(part.values, everything.values[first:], atol=1e-9)
        assert part.cjk.tolist() == everything.cjk[first:].tolist()

    def test_a_name_stands_for_its_column(self) -> None:
        found = retrospective_features(self.SAID, self.BAND).values
        assert found.shape == (60, len(RETROSPECTIVE_NAMES))
        similar = self.BAND.before(REACH)
        for name, expected in {
            "given.lag2": similar[0, :, 1],
            "learned.max4": np.fmax.reduce(similar[1, :, :4], axis=-1),
            "learned.bridge": [*similar[1, 1:, 1], np.nan],
            "asks.now": [float("Which" in s.text or "哪" in s.text) for s in self.SAID],
            "digits.next": [*(4 / 6 * ("5000" in s.text) for s in self.SAID[1:]), np.nan],
        }.items():
            column = found[:, RETROSPECTIVE_NAMES.index(name)]
            np.testing.assert_allclose(column, expected, err_msg=name)

    def test_online_features_come_first(self) -> None:
        assert RETROSPECTIVE_NAMES[: len(ONLINE_NAMES)] == ONLINE_NAMES
        whole = retrospective_features(self.SAID, self.BAND).values[:, : len(ONLINE_NAMES)]
        np.testing.assert_array_equal(whole, online_features(self.SAID, self.BAND).values)
