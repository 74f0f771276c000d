"""The training data of boundaries: dialogues with their vectors, in folds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topicloom.boundary.cues import Utterance
from topicloom.errors import ConfigurationError
from topicloom.index.embedder import Embedder, Vectors
from topicloom_lab.segmentation import SegmentedDialogue, load_dialogues

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
    """Read every `*.jsonl` and `*.jsonl.xz` of a folder.

    Args:
        folder: Where the files are.
        embedder: Makes the vectors.
        folds: Parts that each file's dialogues are dealt to.
        seed: Shuffles before dealing.
        report: Called with the name of every file.

    Raises:
        ConfigurationError: If there is no file.
        NotAConversationError: If a file holds something else.
    """
    paths = sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.xz")])
    if not paths:
        raise ConfigurationError(f"{folder} holds no .jsonl file to train on")
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
