"""Training the boundary model on a small corpus made here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from topicloom import ConfigurationError, NotAConversationError
from topicloom.lab import Features, HashingEmbedder, Matrix, Network
from topicloom.topics.retrospective import RETROSPECTIVE_NAMES
from topicloom_lab.boundary_models import load_trained
from topicloom_lab.segmentation import load_dialogues
from topicloom_lab.training.boundary import GRID, Figure, Trials, train_boundary
from topicloom_lab.training.crossfit import fit_projection, read_corpus, scatters, shared_segments
from topicloom_lab.training.nets import PLAIN, NetRecipe, mix

EMBEDDER = HashingEmbedder(64)
RECIPE = NetRecipe(nets=1, hidden=4, epochs=20, decay=0.01)
SUBJECTS = {
    "tea": ("leaf", "pot", "brew", "cup"),
    "car": ("tyre", "road", "fuel", "brake"),
    "sea": ("wave", "boat", "sail", "tide"),
}
ROLES = ("user", "agent")


def dialogue(number: int, rng: np.random.Generator) -> dict[str, object]:
    """Two or three subjects, each with words of its own."""
    order = rng.permutation(list(SUBJECTS))[: 2 + number % 2]
    segments: list[int] = []
    utterances: list[dict[str, str]] = []
    for subject in order:
        length = 2 * int(rng.integers(1, 4))
        segments.append(length)
        for _ in range(length):
            words = rng.choice(SUBJECTS[str(subject)], size=3)
            text = f"{subject} {' '.join(words)} {number}"
            utterances.append({"role": ROLES[len(utterances) % 2], "text": text})
    return {"id": str(number), "lang": "en", "utterances": utterances, "segments": segments}


def write(path: Path, dialogues: Sequence[object]) -> None:
    path.write_text("".join(f"{json.dumps(d)}\n" for d in dialogues), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of twenty dialogues."""
    rng = np.random.default_rng(1)
    made = tmp_path_factory.mktemp("segmentation")
    write(made / "one.jsonl", [dialogue(n, rng) for n in range(20)])
    write(made / "two.jsonl", [dialogue(n, rng) for n in range(20, 40)])
    return made


def train(folder: Path, out: Path, said: list[str] | None = None) -> list[Figure]:
    report = said.append if said is not None else lambda _: None
    return train_boundary(folder, out, seed=7, report=report, embedder=EMBEDDER, recipe=RECIPE)


@pytest.mark.slow
def test_it_learns_and_says_how_well_and_gives_the_same_again(folder: Path, tmp_path: Path) -> None:
    said: list[str] = []
    figures = train(folder, tmp_path / "a.npz", said)
    train(folder, tmp_path / "b.npz")

    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    with np.load(tmp_path / "a.npz") as first, np.load(tmp_path / "b.npz") as second:
        assert first.files == second.files
        assert all(np.array_equal(first[name], second[name]) for name in first.files)

    assert "fold 5 of 5" in said
    found = [((r.split, r.granularity), r.mode, r.file) for r in figures]
    assert sorted(found) == sorted(
        product(
            [("folds", "auto"), ("folds", "fine"), ("folds", "coarse"), ("kind", "auto")],
            ("online", "retrospective"),
            ("one", "two"),
        )
    )
    of_one = {(r.split, r.granularity, r.mode): r.summary for r in figures if r.file == "one"}
    assert of_one["folds", "auto", "retrospective"].all.score > 0.8


@pytest.mark.slow
def test_what_it_writes_is_a_model_with_its_origin(folder: Path, tmp_path: Path) -> None:
    train(folder, tmp_path / "w.npz")
    beside = json.loads((tmp_path / "w.json").read_text())
    assert set(beside["data"]) == {"one.jsonl", "two.jsonl"}
    assert beside["seed"] == 7
    assert len(beside["figures"]) == 16

    model = load_trained(tmp_path / "w.npz", EMBEDDER.fingerprint)
    given = load_dialogues(folder / "one.jsonl")[0]
    vectors = EMBEDDER.embed([s.text for s in given.said])
    found = model.retrospective(given.said, vectors)
    assert found[given.begins].min() > np.median(found)


@pytest.mark.slow
def test_parts_of_one_kind_are_left_out_together(folder: Path, tmp_path: Path) -> None:
    for name, source in (("one_train", "one"), ("one_dev", "two")):
        (tmp_path / f"{name}.jsonl").write_bytes((folder / f"{source}.jsonl").read_bytes())
    said: list[str] = []
    figures = train(tmp_path, tmp_path / "w.npz", said)
    assert {row.split for row in figures} == {"folds"}
    assert not any(line.startswith("without") for line in said)


class TestThresholds:
    FINE, COARSE = GRID.index(0.2), GRID.index(0.5)

    def trials(self) -> Trials:
        """Two files with two messages a segment, best at 0.2, and two with six, best at 0.5."""
        grid = np.arange(len(GRID))[:, None]
        best = np.array([self.FINE, self.FINE, self.COARSE, self.COARSE])
        return Trials(
            files=np.array(["a", "b", "c", "d"]),
            scores=1 - np.abs(grid - best) / 10 - (grid - best) ** 2 / 1_000,
            messages=np.array([12, 12, 12, 12]),
            segments=np.array([6, 6, 2, 2]),
        )

    def test_fine_and_coarse_are_for_the_finer_and_the_coarser_half(self) -> None:
        found = self.trials().best()
        assert (found["fine"], found["coarse"]) == (0.2, 0.5)
        assert 0.2 < found["auto"] < 0.5

    def test_only_dialogues_that_count_do(self) -> None:
        found = self.trials().best(np.array([False, False, True, True]))
        assert found == {"fine": 0.5, "auto": 0.5, "coarse": 0.5}

    def test_fine_never_finds_less_than_auto_nor_coarse_more(self) -> None:
        given = self.trials()
        found = replace(given, segments=given.segments[::-1]).best()
        assert found["fine"] <= found["auto"] <= found["coarse"]


def test_the_plain_features_exist() -> None:
    assert set(RETROSPECTIVE_NAMES) >= PLAIN


def test_a_folder_without_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"holds no \.jsonl file"):
        train(tmp_path, tmp_path / "w.npz")


def test_a_file_of_something_else_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": "a"}\n')
    with pytest.raises(NotAConversationError, match=r"x\.jsonl, line 1"):
        train(tmp_path, tmp_path / "w.npz")


def test_segments_of_two_folds_teach_the_map_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    twice = dialogue(0, rng)
    write(tmp_path / "one.jsonl", [twice, *(dialogue(n, rng) for n in range(1, 9)), twice])
    corpus = read_corpus(tmp_path, EMBEDDER, folds=2, seed=0, report=lambda _: None)
    copies = [s for s in corpus.samples if s.dialogue.id == "0"]
    shared = shared_segments(corpus.samples)
    apart = copies[0].fold != copies[1].fold
    assert shared == (frozenset(copies[0].segments) if apart else frozenset())


def test_the_map_keeps_what_tells_subjects_apart(folder: Path) -> None:
    corpus = read_corpus(folder, EMBEDDER, folds=5, seed=0, report=lambda _: None)
    learned = fit_projection(scatters(corpus.samples, ()), corpus.files, range(5))
    texts = ["tea leaf", "tea pot", "car road"]

    def closeness(rows: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> float:
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return float(rows[0] @ rows[1] - rows[0] @ rows[2])

    given = EMBEDDER.embed(texts)
    assert closeness(given @ learned) > closeness(given)


def test_the_log_odds_of_a_mixture_are_a_weighted_mean() -> None:
    features = Features(np.random.default_rng(8).normal(size=(5, 3)), np.zeros(5, dtype=np.bool_))
    scales = np.zeros((2, 3), dtype=np.float32), np.ones((2, 3), dtype=np.float32)
    parts = [
        (rng.normal(size=(4, 6)).astype(np.float32), rng.normal(size=7).astype(np.float32))
        for rng in (np.random.default_rng(1), np.random.default_rng(2))
    ]

    def odds(inner: Matrix, outer: Matrix) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        found = Network(*scales, inner, outer).probabilities(features)
        return np.asarray(np.log(found / (1 - found)))

    mixture = mix([(0.3, *parts[0]), (0.7, *parts[1])])
    expected = 0.3 * odds(*parts[0]) + 0.7 * odds(*parts[1])
    np.testing.assert_allclose(odds(*mixture), expected, rtol=1e-4)
