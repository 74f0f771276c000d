"""The second step of the funnel: the rating of a message by its surroundings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from topicloom.search.embedder import Embedder, Vectors, unit_rows
from topicloom.search.vectors import vectors_of
from topicloom.state.rounds import Round
from topicloom.state.stored_message import StoredMessage, measure_gap
from topicloom.topics.boundary_cues import Utterance
from topicloom.topics.boundary_model import BoundaryModel
from topicloom.topics.boundary_policy import AdsorberPolicy


@dataclass(frozen=True, slots=True)
class Rating:
    """The likelihood that a message goes on with the open topic."""

    score: float
    """The score that thresholds apply to; the higher, the likelier the open topic continues."""
    continues: float
    """Probability that the open topic continues."""


class BoundaryDetector(Protocol):
    """Rates messages by what stands before them."""

    def rate(self, before: Sequence[Round], round_: Round) -> Rating:
        """Rate a message as it arrives, alone in its round or with what followed.

        The newest rounds `before` it are oldest first, and not empty.
        """

    def look_back(self, rounds: Sequence[Round], fillers: Collection[int] = ()) -> list[Rating]:
        """A rating a round, once all are known; nothing is known of what stands before them.

        Those of the first round and of fillers, given by their first messages, say nothing.
        """

    def expect(self, messages: Sequence[StoredMessage]) -> None:
        """Make what the next ratings need of these messages, which the encoder remembers."""


class TrainedDetector:
    """By the boundary model: the score is its probability, even at the granularity's threshold."""

    def __init__(self, model: BoundaryModel, embedder: Embedder, policy: AdsorberPolicy) -> None:
        self._model = model
        self._embedder = embedder
        self._policy = policy

    def rate(self, before: Sequence[Round], round_: Round) -> Rating:
        messages = _spoken([*before, Round(round_.messages[:1])])
        heard, vectors = _utterances(messages), vectors_of(messages, self._embedder)
        threshold = self._model.thresholds["online"][self._policy.granularity]
        odds = _odds(self._model.newest(heard, vectors), threshold)
        return _rating(odds * self._pause(before[-1], round_))

    def look_back(self, rounds: Sequence[Round], fillers: Collection[int] = ()) -> list[Rating]:
        # With its fillers: the model was trained on such talk.
        messages = _spoken(rounds)
        found = self._model.retrospective(
            _utterances(messages), vectors_of(messages, self._embedder)
        )
        at = dict(zip((r.seq for r in messages), map(float, found), strict=True))
        threshold = self._model.thresholds["retrospective"][self._policy.granularity]
        pauses = [1.0, *(self._pause(a, b) for a, b in pairwise(rounds))][: len(rounds)]
        return [
            _rating(_odds(at.get(round_.first, 0.0), threshold) * pause)
            for round_, pause in zip(rounds, pauses, strict=True)
        ]

    def expect(self, messages: Sequence[StoredMessage]) -> None:
        vectors_of([m for m in messages if _is_spoken(m)], self._embedder)

    def _pause(self, before: Round, round_: Round) -> float:
        hours = measure_gap(before.messages[-1], round_.messages[0])
        return self._policy.pause_odds if hours >= self._policy.pause_hours else 1.0


class CosineDetector:
    """By the cosine of a message's anchor to the centroid of the open topic."""

    def __init__(
        self, embedder: Embedder, policy: AdsorberPolicy, trained: TrainedDetector
    ) -> None:
        # The trained one gives the probabilities, which a cosine is not.
        self._embedder = embedder
        self._policy = policy
        self._trained = trained

    def rate(self, before: Sequence[Round], round_: Round) -> Rating:
        last = max((i for i, b in enumerate(before) if b.opens), default=0)
        vectors = self._anchors([*before[last:], round_])
        score = float(_centroid(vectors[:-1]) @ vectors[-1])
        return Rating(score, self._trained.rate(before, round_).continues)

    def look_back(self, rounds: Sequence[Round], fillers: Collection[int] = ()) -> list[Rating]:
        """See `BoundaryDetector.look_back`; what was seen as a message came is never revised.

        Scores are cosines to the centroid since the last place that is in no doubt.
        """
        telling = [b for b in rounds if b.first not in fillers]
        vectors = self._anchors(telling)
        scores: dict[int, float] = {}
        last = 0
        for place, round_ in enumerate(telling[1:], start=1):
            scores[round_.first] = float(_centroid(vectors[last:place]) @ vectors[place])
            last = place if scores[round_.first] < self._policy.low else last
        return [Rating(scores.get(b.first, 1.0), 0.0 if b.opens else 1.0) for b in rounds]

    def expect(self, messages: Sequence[StoredMessage]) -> None:
        self._trained.expect(messages)

    def _anchors(self, rounds: Sequence[Round]) -> Vectors:
        context = self._policy.anchor == "context"
        return self._embedder.embed(
            [b.anchor_text if context else b.rewritten_query for b in rounds]
        )


def _centroid(vectors: Vectors) -> Vectors:
    return np.asarray(unit_rows(vectors.sum(axis=0, keepdims=True))[0])


def _spoken(rounds: Sequence[Round]) -> list[StoredMessage]:
    """The messages of people and models: tool results are no talk, and neither are empty calls."""
    return [m for round_ in rounds for m in round_.messages if _is_spoken(m)]


def _is_spoken(message: StoredMessage) -> bool:
    return message.role in ("user", "assistant") and bool(message.text.strip())


def _utterances(messages: Sequence[StoredMessage]) -> list[Utterance]:
    return [Utterance(r.role, r.speaker, r.query or r.text) for r in messages]


def _rating(odds: float) -> Rating:
    """The rating of odds that a topic begins: a probability by which thresholds go as well."""
    return Rating(1 / (1 + odds), 1 / (1 + odds))


def _odds(probability: float, threshold: float) -> float:
    """Odds of a probability, in units of those of a threshold."""
    p = min(max(probability, 1e-6), 1 - 1e-6)
    return (p / (1 - p)) / (threshold / (1 - threshold))
