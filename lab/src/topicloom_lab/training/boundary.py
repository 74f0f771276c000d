"""Training the boundary model: `train_boundary(folder, out)`.

One pooled model serves every kind of dialogue, and no one tells it the kind. What is reported is
out of sample: by folds over all dialogues, and with each kind of dialogue left out as a whole.

What a topic is differs: some files change it every three messages, others every six. The threshold
`auto` is the best compromise, `fine` does best on the finer half of the files, `coarse` on the
other, by messages per segment.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from topicloom import Embedder, default_embedder
from topicloom.lab import VERSION, BoundaryModel, Granularity
from topicloom_lab.boundary_models import MODES, NAMES
from topicloom_lab.segmentation import (
    SegmentationSummary,
    boundaries,
    measures_of_each,
    score,
    summarize,
)
from topicloom_lab.training.crossfit import (
    Corpus,
    CrossFit,
    Probabilities,
    Report,
    Sample,
    read_corpus,
)
from topicloom_lab.training.nets import NetRecipe

GRID = tuple(round(0.1 + 0.025 * step, 3) for step in range(25))
"""Thresholds to choose among."""

Used = NDArray[np.bool_]
"""The dialogues that count."""


@dataclass(frozen=True, slots=True)
class Trials:
    """The scores of every threshold of `GRID` on every dialogue."""

    files: NDArray[np.str_]
    """File of each dialogue [dialogues]."""
    scores: NDArray[np.float64]
    """Score of each [thresholds, dialogues]."""
    messages: NDArray[np.int64]
    """Messages in each dialogue [dialogues]."""
    segments: NDArray[np.int64]
    """Segments in each [dialogues]."""

    @classmethod
    def of(cls, samples: Sequence[Sample], probabilities: Sequence[NDArray[np.float64]]) -> Trials:
        """Try all thresholds, on the probabilities of a model that was not fitted on the sample."""
        dialogues = [sample.dialogue for sample in samples]
        scores = [
            score(measures_of_each(dialogues, [boundaries(p, threshold) for p in probabilities]))
            for threshold in GRID
        ]
        return cls(
            np.array([sample.file for sample in samples]),
            np.array(scores),
            np.array([len(dialogue.utterances) for dialogue in dialogues]),
            np.array([len(dialogue.segments) for dialogue in dialogues]),
        )

    def best(self, used: Used | None = None) -> dict[Granularity, float]:
        """Thresholds with the highest mean score over files, of the dialogues that count.

        `fine` is for the finer half of the files and at most `auto`, `coarse` for the coarser half
        and at least `auto`; the middle one of an odd number of files is in both halves.
        """
        chosen = np.ones(len(self.files), dtype=np.bool_) if used is None else used
        groups = [chosen & (self.files == file) for file in np.unique(self.files[chosen])]
        groups.sort(key=lambda group: self.messages[group].sum() / self.segments[group].sum())
        by_file = np.array([self.scores[:, group].mean(axis=1) for group in groups])
        half = (len(groups) + 1) // 2
        auto = int(np.argmax(by_file.mean(axis=0)))
        fine = int(np.argmax(by_file[:half].mean(axis=0)[: auto + 1]))
        coarse = auto + int(np.argmax(by_file[-half:].mean(axis=0)[auto:]))
        return {"auto": GRID[auto], "fine": GRID[fine], "coarse": GRID[coarse]}


FOLDS = 5


@dataclass(frozen=True, slots=True)
class Figure:
    """The scores of one mode on one file that it was not fitted on."""

    split: str
    """`folds`: fitted on four fifths of all files; `kind`: fitted on the other kinds."""
    mode: str
    granularity: Granularity
    file: str
    summary: SegmentationSummary

    def as_json(self) -> dict[str, Any]:
        """As it stands beside the weights."""
        head = {"split": self.split, "mode": self.mode, "granularity": self.granularity}
        return head | {"file": self.file} | self.summary.as_json()


def train_boundary(
    folder: Path,
    out: Path,
    *,
    seed: int = 0,
    report: Report,
    embedder: Embedder | None = None,
    recipe: NetRecipe | None = None,
) -> list[Figure]:
    """Train on every segmentation file of a folder and write the weights.

    Args:
        folder: Holds `*.jsonl` files of segmented dialogues.
        out: The `.npz` file to write; its description and figures go beside it as `.json`.
        seed: Deals the folds and starts the nets.
        report: Called with the progress.
        embedder: Makes the vectors; None for the default.
        recipe: How nets are fitted; None for the default.

    Returns:
        Out of sample: by folds one a mode, granularity and file, by kinds of `auto` only.

    Raises:
        ConfigurationError: If there is nothing to train on, or nltk or scikit-learn is not there.
        NotAConversationError: If a file holds something else.
    """
    embedder, recipe = embedder or default_embedder(), recipe or NetRecipe()
    corpus = read_corpus(folder, embedder, folds=FOLDS, seed=seed, report=report)
    fitting = CrossFit(corpus, recipe, seed)
    folds = _by_folds(fitting, report)
    report("trying thresholds")
    trials = {m: Trials.of(corpus.samples, [p[m] for p in folds]) for m in MODES}
    rows = list(_fold_figures(corpus, folds, trials))
    if len(corpus.kinds) > 1:
        rows += _kind_figures(corpus, fitting, trials, report)
    report("fitting on everything")
    fitted = fitting.fit(fitting.known)
    thresholds = {mode: trials[mode].best() for mode in MODES}
    model = BoundaryModel(fitted.learned, fitted.nets, thresholds)
    save_model(out, model, embedder.fingerprint, _description(corpus, recipe, seed, rows))
    return rows


def _by_folds(fitting: CrossFit, report: Report) -> list[Probabilities]:
    """Probabilities of every dialogue by a model fitted on the other folds."""
    found: dict[int, Probabilities] = {}
    for fold in range(FOLDS):
        report(f"fold {fold + 1} of {FOLDS}")
        test = {i: k for i, k in enumerate(fitting.known) if k.sample.fold == fold}
        train = [k for k in fitting.known if k.sample.fold != fold]
        fitted = fitting.fit(train, list(test.values()))
        found |= {i: fitted.probabilities(known) for i, known in test.items()}
    return [found[i] for i in range(len(fitting.known))]


def _fold_figures(
    corpus: Corpus, folds: Sequence[Probabilities], trials: Mapping[str, Trials]
) -> Iterator[Figure]:
    """Each fold with the thresholds of the other folds."""
    fold_of = np.array([sample.fold for sample in corpus.samples])
    for mode in MODES:
        thresholds = [trials[mode].best(fold_of != fold) for fold in range(FOLDS)]
        for granularity, file in product(get_args(Granularity), corpus.files):
            own = [i for i, sample in enumerate(corpus.samples) if sample.file == file]
            begins = [boundaries(folds[i][mode], thresholds[fold_of[i]][granularity]) for i in own]
            summary = summarize([corpus.samples[i].dialogue for i in own], begins)
            yield Figure("folds", mode, granularity, file, summary)


def _kind_figures(
    corpus: Corpus, fitting: CrossFit, trials: Mapping[str, Trials], report: Report
) -> Iterator[Figure]:
    """Each kind by a model and a threshold of the other kinds."""
    for kind in corpus.kinds:
        report(f"without {kind}")
        test = [known for known in fitting.known if known.sample.kind == kind]
        fitted = fitting.fit([k for k in fitting.known if k.sample.kind != kind], test)
        probabilities = [fitted.probabilities(known) for known in test]
        others = np.array([sample.kind != kind for sample in corpus.samples])
        for mode, file in product(MODES, sorted({known.sample.file for known in test})):
            threshold = trials[mode].best(others)["auto"]
            own = [i for i, known in enumerate(test) if known.sample.file == file]
            begins = [boundaries(probabilities[i][mode], threshold) for i in own]
            summary = summarize([test[i].sample.dialogue for i in own], begins)
            yield Figure("kind", mode, "auto", file, summary)


def _description(
    corpus: Corpus, recipe: NetRecipe, seed: int, rows: Sequence[Figure]
) -> dict[str, Any]:
    versions = {"python": platform.python_version()}
    for name in ("numpy", "scipy", "scikit-learn", "nltk", "onnxruntime"):
        versions[name] = version(name)
    return {
        "seed": seed,
        "recipe": asdict(recipe),
        "versions": versions,
        "data": corpus.hashes,
        "figures": [row.as_json() for row in rows],
    }


def pack(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """One byte a weight of [..., rows, columns], with a scale a column: a quarter of the size."""
    largest = np.abs(matrix).max(axis=-2, keepdims=True, initial=0)
    scale = np.maximum(largest, 1e-12) / 127
    return np.rint(matrix / scale).astype(np.int8), scale.astype(np.float32)


def save_model(path: Path, model: BoundaryModel, embedder: str, figures: Mapping[str, Any]) -> None:
    """Write a model to `path` (`.npz`), and its description and figures beside it.

    Args:
        path: The file to write.
        model: What is learned.
        embedder: Fingerprint of the embedder that it was trained with.
        figures: What else the description says.
    """
    arrays: dict[str, NDArray[Any]] = {}
    arrays["learned"], arrays["learned_scale"] = pack(model.learned)
    for mode, net in model.nets.items():
        arrays[f"{mode}_mean"], arrays[f"{mode}_spread"] = net.mean, net.spread
        arrays[f"{mode}_inner"], arrays[f"{mode}_inner_scale"] = pack(net.inner)
        arrays[f"{mode}_outer"] = net.outer
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, allow_pickle=False, **arrays)
    described = {
        "features": VERSION,
        "embedder": embedder,
        "thresholds": model.thresholds,
        **figures,
        # Long: they stand last, behind what people read.
        "names": NAMES,
    }
    text = json.dumps(described, ensure_ascii=False, indent=1)
    path.with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")
