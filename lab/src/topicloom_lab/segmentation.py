"""Topic boundaries against dialogues whose segments are known: Pk, WindowDiff, F1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, model_validator

from topicloom import Embedder
from topicloom.lab import BoundaryModel, Granularity, Utterance
from topicloom_app.recordings.records import read_records
from topicloom_lab.boundary_models import judge_online

Mode = Literal["online", "retrospective"]
Flags = NDArray[np.bool_]
"""True if a topic begins at each message [n]."""

_ROLES = {"user": "user", "agent": "assistant", "assistant": "assistant", "system": "assistant"}
"""Roles of segmentation files, as ours; any other role names a speaker."""
DEPENDENT = "不独立多领域"
"""`type` of dialogues whose sub-goals build on one another: a reader sees one topic."""


class MarkedUtterance(BaseModel, frozen=True):
    """One message of a segmented dialogue."""

    role: str | None = None
    """The speaker, by role or by a letter; None where the data does not say."""
    text: str


class SegmentedDialogue(BaseModel, frozen=True, coerce_numbers_to_str=True):
    """A dialogue with the lengths of its segments."""

    id: str
    lang: str = "en"
    type: str | None = None
    """A kind of dialogue, where the data tells kinds apart."""
    utterances: tuple[MarkedUtterance, ...] = Field(min_length=1)
    segments: tuple[int, ...] = Field(min_length=1)
    """Utterances in each segment; they add up to all utterances."""

    @model_validator(mode="after")
    def _segments_cover(self) -> SegmentedDialogue:
        if min(self.segments) < 1 or sum(self.segments) != len(self.utterances):
            raise ValueError(
                f"segments {list(self.segments)} do not cover {len(self.utterances)} utterances"
            )
        return self

    @property
    def said(self) -> list[Utterance]:
        """The messages as the boundary model takes them."""
        roles = [_ROLES.get(u.role or "") for u in self.utterances]
        return [
            Utterance(role, None if role else u.role, u.text)
            for u, role in zip(self.utterances, roles, strict=True)
        ]

    @property
    def begins(self) -> Flags:
        """True if a segment begins at each message [n]; the first always does."""
        begins = np.zeros(len(self.utterances), dtype=np.bool_)
        begins[np.cumsum((0, *self.segments[:-1]))] = True
        return begins


def load_dialogues(path: Path) -> list[SegmentedDialogue]:
    """The dialogues of a file; raises what `read_records` raises."""
    wanted = '{"id", "utterances": [{"role", "text"}], "segments": [length, ...]}'
    return list(read_records(path, SegmentedDialogue, "segmented dialogue", wanted))


@dataclass(frozen=True, slots=True)
class Measures:
    """Scores of found boundaries against the true ones, averaged over dialogues."""

    dialogues: int
    pk: float
    """Chance that two messages some way apart are wrongly put together or apart; 0 is best."""
    window_diff: float
    """Chance that a window holds a wrong number of boundaries; 0 is best."""
    f1: float
    """F1 of exact boundaries; 0 for a dialogue without any."""
    ratio: float
    """Found boundaries per true one, over all dialogues; `inf` if there is no true one."""

    @property
    def score(self) -> float:
        """One figure for all three (SuperDialseg, Jiang et al. 2023); see `score`."""
        return float(score(np.array([self.pk, self.window_diff, self.f1])))

    def as_json(self) -> dict[str, float]:
        """Rounded, with the score."""
        found = {
            name: round(getattr(self, name), 4) for name in ("score", "pk", "window_diff", "f1")
        }
        return {"dialogues": self.dialogues} | found | {"ratio": round(self.ratio, 3)}


def measure(dialogues: Sequence[SegmentedDialogue], begins: Sequence[Flags]) -> Measures:
    """Compare.

    Args:
        dialogues: What is true; not empty.
        begins: For each dialogue, whether a topic was found to begin at each message.
    """
    pk, window_diff, f1 = measures_of_each(dialogues, begins).mean(axis=0)
    found = sum(sum(closing_labels(flags)) for flags in begins)
    true = sum(len(dialogue.segments) - 1 for dialogue in dialogues)
    ratio = found / true if true else float("inf")
    return Measures(len(dialogues), float(pk), float(window_diff), float(f1), ratio)


def measures_of_each(
    dialogues: Sequence[SegmentedDialogue], begins: Sequence[Flags]
) -> NDArray[np.float64]:
    """Pk, WindowDiff and F1 of every dialogue [dialogues, 3]; arguments as of `measure`.

    A dialogue of N utterances in S segments is read through windows of
    `max(2, round(N / S / 2))` utterances.
    """
    from nltk.metrics.segmentation import pk, windowdiff
    from sklearn.metrics import f1_score

    longest = max(len(dialogue.utterances) for dialogue in dialogues)
    # One call for all: a column a dialogue, and an empty one, since a single column is read as
    # plain labels. Rows past a dialogue's end are 0 in both and do not count.
    labels = np.zeros((2, longest, len(dialogues) + 1), dtype=np.int8)
    rows = []
    for column, (dialogue, flags) in enumerate(zip(dialogues, begins, strict=True)):
        pair = closing_labels(dialogue.begins), closing_labels(flags)
        count = len(pair[0])
        labels[:, :count, column] = pair
        gold, found = ("".join(map(str, each)) for each in pair)
        window = min(max(2, round(count / len(dialogue.segments) / 2)), count)
        rows.append((pk(gold, found, k=window), windowdiff(gold, found, window)))
    f1 = f1_score(*labels, average=None, zero_division=0)[:-1]
    return np.column_stack([np.array(rows), f1])


def score(measures: NDArray[np.float64]) -> NDArray[np.float64]:
    """F1 / 2 + (1 - Pk) / 4 + (1 - WindowDiff) / 4 of Pk, WindowDiff and F1 [..., 3]."""
    pk, window_diff, f1 = measures[..., 0], measures[..., 1], measures[..., 2]
    return np.asarray(f1 / 2 + (1 - pk) / 4 + (1 - window_diff) / 4, dtype=np.float64)


def closing_labels(begins: Flags) -> list[int]:
    """1 for the last utterance of each segment but the final one, else 0 [n]."""
    return [*map(int, begins[1:]), 0]


@dataclass(frozen=True, slots=True)
class SegmentationSummary:
    """A whole file."""

    all: Measures
    dependent: Measures | None
    """Of dialogues whose sub-goals build on one another, where the data tells them apart."""
    false_splits: float | None
    """Boundaries per such dialogue that stand where no segment begins."""

    def as_json(self) -> dict[str, Any]:
        """The summary as it is printed and kept."""
        found: dict[str, Any] = self.all.as_json()
        if self.dependent is not None and self.false_splits is not None:
            splits = {"false_splits": round(self.false_splits, 3)}
            found["dependent"] = self.dependent.as_json() | splits
        return found


def evaluate_segmentation(
    dialogues: Iterable[SegmentedDialogue],
    model: BoundaryModel,
    embedder: Embedder,
    *,
    mode: Mode = "online",
    granularity: Granularity = "auto",
    progress: Callable[[int], None] | None = None,
) -> tuple[list[dict[str, Any]], SegmentationSummary]:
    """Find boundaries in every dialogue and compare them with the true ones.

    Args:
        dialogues: At least one.
        model: The boundary model.
        embedder: The one that it was trained with.
        mode: `online` decides at each message for good, `retrospective` knows the whole dialogue.
        granularity: How fine topics are.
        progress: Called with the number of dialogues done.

    Returns:
        For each dialogue its `id` and `boundaries`, 1 on the last utterance of a found segment
        and else 0, as the results file has them; and what they are worth.
    """
    given = list(dialogues)
    judge = partial(judge_online, model) if mode == "online" else model.retrospective
    threshold = model.thresholds[mode][granularity]
    begins = []
    for number, dialogue in enumerate(given, start=1):
        said = dialogue.said
        vectors = embedder.embed([s.text for s in said])
        begins.append(boundaries(judge(said, vectors), threshold))
        if progress is not None:
            progress(number)
    rows = [
        {"id": dialogue.id, "boundaries": closing_labels(flags)}
        for dialogue, flags in zip(given, begins, strict=True)
    ]
    return rows, summarize(given, begins)


def boundaries(probabilities: NDArray[np.float64], threshold: float) -> Flags:
    """True where topics begin [n], each by itself: what is decided online is never revised."""
    return np.asarray(probabilities >= threshold, dtype=np.bool_)


def summarize(
    dialogues: Sequence[SegmentedDialogue], begins: Sequence[Flags]
) -> SegmentationSummary:
    """Measures of all dialogues, and of the dependent ones apart; arguments as of `measure`."""
    everything = measure(dialogues, begins)
    pairs = zip(dialogues, begins, strict=True)
    dependent = [(d, b) for d, b in pairs if (d.type or "").startswith(DEPENDENT)]
    if not dependent:
        return SegmentationSummary(everything, None, None)
    false = sum(int((found[1:] & ~d.begins[1:]).sum()) for d, found in dependent)
    apart = measure(*zip(*dependent, strict=True))
    return SegmentationSummary(everything, apart, false / len(dependent))
