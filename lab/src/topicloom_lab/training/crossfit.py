"""Fitting on some dialogues and judging others, without the first knowing the second.

The map of the channel `learned` is fitted too, and what it was fitted on looks better separated
than it is. So the features that the nets are trained on are made with maps that never saw their
dialogue: the training dialogues are taken by folds, each with a map fitted on the other folds.

The map is by linear discriminant analysis over segments: messages of one differ in who asks and
how, neighbouring segments of one dialogue in what they are about. It keeps the directions with the
largest ratio of the second to the first and scales the first to one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topicloom import ConfigurationError, Embedder
from topicloom.lab import (
    REACH,
    Band,
    Features,
    Floats,
    Network,
    Utterance,
    Vectors,
    following_features,
    gap_features,
    in_cjk,
    message_features,
    similarity_features,
    unit_rows,
)
from topicloom_lab.boundary_models import NAMES
from topicloom_lab.segmentation import SegmentedDialogue, load_dialogues
from topicloom_lab.training.nets import NetRecipe, Rows, fit_network

Report = Callable[[str], None]
"""Takes a line about how far things are."""


@dataclass(frozen=True)
class Sample:
    """One dialogue."""

    file: str
    """Name of the file it is from, without endings."""
    fold: int
    """Part of the file that it is in."""
    dialogue: SegmentedDialogue
    vectors: Vectors
    """Those of its messages [n, d]."""

    @cached_property
    def said(self) -> list[Utterance]:
        """Its messages [n]."""
        return self.dialogue.said

    @cached_property
    def begins(self) -> NDArray[np.bool_]:
        """True if a segment begins at each message [n]."""
        return self.dialogue.begins

    @cached_property
    def segments(self) -> tuple[str, ...]:
        """The whole text of each segment: stitched dialogues share segments."""
        texts = [u.text for u in self.dialogue.utterances]
        bounds = pairwise([*np.flatnonzero(self.begins), len(texts)])
        return tuple("\n".join(texts[begin:end]) for begin, end in bounds)

    @property
    def kind(self) -> str:
        """Kind of dialogue: the file's name up to the first underscore, so without its part."""
        return self.file.split("_")[0]

    @property
    def segment_of(self) -> NDArray[np.int64]:
        """Number of the segment that each message is in [n]."""
        return np.asarray(np.cumsum(self.begins) - 1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Corpus:
    """All dialogues of a folder."""

    samples: tuple[Sample, ...]
    hashes: dict[str, str]
    """SHA-256 of each file that was read, by file name."""

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files, sorted."""
        return tuple(sorted({sample.file for sample in self.samples}))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of dialogue, sorted."""
        return tuple(sorted({sample.kind for sample in self.samples}))


def read_corpus(
    folder: Path, embedder: Embedder, *, folds: int, seed: int, report: Report
) -> Corpus:
    """Read every `*.jsonl` and `*.jsonl.xz` of a folder, whose name is reported.

    The dialogues of each are shuffled by the seed, then dealt to the folds.

    Raises:
        ConfigurationError: If there is no file.
        NotAConversationError: If a file holds something else.
    """
    paths = sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.xz")])
    if not paths:
        raise ConfigurationError("{folder} holds no .jsonl file to train on", folder=folder)
    rng = np.random.default_rng(seed)
    samples: list[Sample] = []
    for path in paths:
        dialogues = load_dialogues(path)
        report(f"{path.name}: embedding {len(dialogues)} dialogues")
        dealt = rng.permutation(len(dialogues)) % folds
        samples += _samples(path.name.split(".")[0], dialogues, dealt, embedder)
    hashes = {path.name: sha256(path.read_bytes()).hexdigest() for path in paths}
    return Corpus(tuple(samples), hashes)


def _samples(
    file: str,
    dialogues: Sequence[SegmentedDialogue],
    folds: NDArray[np.int64],
    embedder: Embedder,
) -> list[Sample]:
    texts = [u.text for dialogue in dialogues for u in dialogue.utterances]
    # Similar lengths together: a batch is as slow as its longest text.
    distinct = sorted(set(texts), key=lambda text: (len(text), text))
    rows = {text: row for row, text in enumerate(distinct)}
    vectors = embedder.embed(distinct)
    return [
        Sample(file, int(fold), dialogue, vectors[[rows[u.text] for u in dialogue.utterances]])
        for dialogue, fold in zip(dialogues, folds, strict=True)
    ]


def shared_segments(samples: Sequence[Sample]) -> frozenset[str]:
    """Segments that stand in more than one fold: they would carry a test into its training."""
    folds: defaultdict[str, set[int]] = defaultdict(set)
    for sample in samples:
        for segment in sample.segments:
            folds[segment].add(sample.fold)
    return frozenset(segment for segment, where in folds.items() if len(where) > 1)


DIRECTIONS = 32
"""Columns of the map. Chosen for the size of the weights, between 24 and 96 that were compared:
which of those separated segments better differed from file to file."""
SHRINKAGE = 0.2
"""Of the mean variance within segments, added to all. Chosen between 0.1 and 0.5 that were
compared, with 2, which was worse for CJK text."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """Sums of squares within and between segments."""

    within: NDArray[np.float64]
    """Of messages less the mean of their segment [d, d]."""
    messages: int
    between: NDArray[np.float64]
    """Of the differences of the means of neighbouring segments [d, d]."""
    pairs: int


Cell = tuple[str, int]
"""A file and a fold of it."""


def scatters(samples: Sequence[Sample], without: Collection[str]) -> dict[Cell, Scatter]:
    """Scatter of every file and fold, of all segments but those in `without`."""
    cells = sorted({(sample.file, sample.fold) for sample in samples})
    return {
        cell: _scatter([s for s in samples if (s.file, s.fold) == cell], without) for cell in cells
    }


def _scatter(samples: Sequence[Sample], without: Collection[str]) -> Scatter:
    dimension = samples[0].vectors.shape[1]
    within: list[NDArray[np.float32]] = [np.zeros((0, dimension), dtype=np.float32)]
    between: list[NDArray[np.float32]] = []
    for sample in samples:
        parts = np.split(sample.vectors, np.flatnonzero(sample.begins)[1:])
        used = [segment not in without for segment in sample.segments]
        means = [part.mean(axis=0) for part in parts]
        within += [part - m for part, m, use in zip(parts, means, used, strict=True) if use]
        pairs = pairwise(zip(means, used, strict=True))
        between += [a - b for (a, use_a), (b, use_b) in pairs if use_a and use_b]
    inside = np.concatenate(within)
    across = np.array(between, dtype=np.float32).reshape(-1, dimension)
    squares = [(rows.T @ rows).astype(np.float64) for rows in (inside, across)]
    return Scatter(squares[0], len(inside), squares[1], len(across))


def fit_projection(
    cells: dict[Cell, Scatter], files: Collection[str], folds: Collection[int]
) -> NDArray[np.float32]:
    """The map [d, `DIRECTIONS`] from the cells of some files and folds; every file counts alike."""
    from scipy.linalg import eigh

    size = next(iter(cells.values())).within.shape[0]
    inside, across = np.zeros((size, size)), np.zeros((size, size))
    for file in files:
        own = [cell for (name, fold), cell in cells.items() if name == file and fold in folds]
        for cell in own:
            inside += cell.within / max(sum(c.messages for c in own), 1)
            across += cell.between / max(sum(c.pairs for c in own), 1)
    ridge = SHRINKAGE * np.trace(inside) / size + 1e-9
    count = min(DIRECTIONS, size)
    _, directions = eigh(
        across, inside + ridge * np.eye(size), subset_by_index=(size - count, size - 1)
    )
    # The sign of a direction is free: fixed here, so that equal data gives equal weights.
    strongest = np.abs(directions).argmax(axis=0)
    return np.asarray(
        directions * np.sign(directions[strongest, np.arange(count)]), dtype=np.float32
    )


Probabilities = dict[str, NDArray[np.float64]]
"""Of each mode, probabilities [n] of one dialogue."""


@dataclass(frozen=True, slots=True)
class Known:
    """A dialogue with what does not depend on the map, made once."""

    sample: Sample
    online: Floats
    """Causal features [n, f] of the messages and of the channel `given`."""
    ahead: Floats
    """Features [n, f] that look ahead, of the same."""
    cjk: NDArray[np.bool_]
    """True if each message is CJK text [n]."""

    @classmethod
    def of(cls, sample: Sample) -> Known:
        """Make what can be made without a map."""
        said, given = sample.said, Band.of([unit_rows(sample.vectors)], REACH)
        online = np.hstack([message_features(said), *similarity_features(said, given)])
        ahead = np.hstack([following_features(said), *gap_features(given)])
        return cls(sample, online, ahead, in_cjk(said))

    def features(self, learned: NDArray[np.float32]) -> dict[str, Features]:
        """Features of each mode with a map, in the order of `NAMES`."""
        band = Band.of([unit_rows(self.sample.vectors @ learned)], REACH)
        online = np.hstack([self.online, *similarity_features(self.sample.said, band)])
        whole = np.hstack([online, self.ahead, *gap_features(band)])
        found = {"online": online, "retrospective": whole}
        return {mode: Features(values, self.cjk) for mode, values in found.items()}


@dataclass(frozen=True, slots=True)
class Fitted:
    """A map, and a net a mode."""

    learned: NDArray[np.float32]
    nets: dict[str, Network]

    def probabilities(self, known: Known) -> Probabilities:
        """Probabilities of a dialogue, by mode."""
        features = known.features(self.learned)
        return {mode: net.probabilities(features[mode]) for mode, net in self.nets.items()}


class CrossFit:
    """Fits on any choice of files and folds of a corpus."""

    def __init__(self, corpus: Corpus, recipe: NetRecipe, seed: int) -> None:
        self.known = tuple(Known.of(sample) for sample in corpus.samples)
        """The dialogues, in the order of the corpus."""
        self._files = corpus.files
        self._recipe = recipe
        self._seed = seed
        shared = shared_segments(corpus.samples)
        self._cells: dict[Cell, Scatter] = scatters(corpus.samples, shared)

    def fit(self, train: Sequence[Known], test: Sequence[Known] = ()) -> Fitted:
        """Fit on dialogues.

        Args:
            train: Whole folds of some files.
            test: Dialogues to be judged: training rows whose segment stands in one of them too,
                or that end such a segment, are left out.
        """
        files = sorted({known.sample.file for known in train})
        folds = sorted({known.sample.fold for known in train})
        banned = frozenset(segment for known in test for segment in known.sample.segments)
        rows: list[Rows] = []
        for fold in folds:
            learned = fit_projection(self._cells, files, [f for f in folds if f != fold])
            own = [known for known in train if known.sample.fold == fold]
            rows += [_rows(k, learned, self._files.index(k.sample.file), banned) for k in own]
        joined = Rows(*map(np.concatenate, zip(*rows, strict=True)))
        nets = {}
        for mode, names in NAMES.items():
            # Causal features come first.
            own_rows = joined._replace(values=joined.values[:, : len(names)])
            nets[mode] = fit_network(own_rows, names, self._recipe, self._seed)
        return Fitted(fit_projection(self._cells, files, folds), nets)


def _rows(known: Known, learned: NDArray[np.float32], file: int, banned: frozenset[str]) -> Rows:
    sample = known.sample
    segment_of = sample.segment_of
    seen = np.array([segment in banned for segment in sample.segments])
    before = np.maximum(segment_of - sample.begins, 0)
    kept = ~(seen[segment_of] | seen[before])
    kept[0] = False  # a conversation's first message is no decision
    features = known.features(learned)["retrospective"]
    files = np.full(int(kept.sum()), file, dtype=np.int64)
    return Rows(features.values[kept], features.cjk[kept], sample.begins[kept], files)
