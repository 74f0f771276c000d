"""Which open topic a block belongs to, or that it opens another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topicloom.boundary.cues import Utterance
from topicloom.index.embedder import Vectors
from topicloom.perception.rejoin.features import Features, features_of
from topicloom.perception.rejoin.scene import Scene
from topicloom.perception.rejoin.signs import Signs, joined, signs_of
from topicloom.perception.rejoin.trace import TopicTrace
from topicloom.perception.rejoin.weights import RejoinWeights, load_weights


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Where a block belongs, and how sure that is."""

    index: int | None
    """Place of the most probable topic among the candidates; None for a new one."""
    probabilities: NDArray[np.float64]
    """Probability [n + 1] of each candidate, and at the end of a new topic."""
    usual: float | None = None
    """Mean cosine of the block's first message to the candidates' messages, for `Scene`."""
    spread: float | None = None
    """Its standard deviation."""

    @property
    def certainty(self) -> float:
        """Probability of what was chosen."""
        return float(self.probabilities.max())


class Rejoiner:
    """Scores open topics for a block with the trained weights."""

    def __init__(self, weights: RejoinWeights) -> None:
        self._weights = weights

    @classmethod
    def load(cls, path: Path | None = None, *, embedder: str | None = None) -> Rejoiner:
        """A rejoiner with the weights at `path`, or those that ship.

        Args:
            path: As in `weights.load_weights`.
            embedder: Fingerprint of the embedder whose vectors will be given.

        Raises:
            ConfigurationError: As in `weights.load_weights`.
        """
        return cls(load_weights(path, embedder=embedder))

    def signs(self, said: Utterance, vector: Vectors) -> Signs:
        """A message taken apart, as `TopicTrace.add` and `Scene.heard` take it.

        Args:
            said: The message.
            vector: Its unit vector [d].
        """
        return signs_of(said, vector, self._weights.lexicon)

    def choose(
        self,
        candidates: Sequence[TopicTrace],
        messages: Sequence[Utterance],
        vectors: Vectors,
        scene: Scene,
    ) -> Choice:
        """Choose for one block.

        Args:
            candidates: The open topics [n]; with none, the block opens one.
            messages: The block's messages [m]: the one that opens it, and the replies that are
                known already.
            vectors: Their vectors [m, d].
            scene: The conversation before the block.
        """
        block = [self.signs(*pair) for pair in zip(messages, vectors, strict=True)]
        return self.decide(candidates, block, scene)

    def decide(
        self, candidates: Sequence[TopicTrace], block: Sequence[Signs], scene: Scene
    ) -> Choice:
        """`choose` for a block that is taken apart already."""
        if not candidates:
            return Choice(None, np.ones(1))
        features = self.features(candidates, block, scene)
        found = self.probabilities(features)
        best = int(found.argmax())
        index = best if best < len(candidates) else None
        return Choice(index, found, features.usual, features.spread)

    def probabilities(self, features: Features) -> NDArray[np.float64]:
        """Probability [n + 1] of each candidate, and at the end of a new topic."""
        return self._weights.network.probabilities(features)

    def features(
        self, candidates: Sequence[TopicTrace], block: Sequence[Signs], scene: Scene
    ) -> Features:
        """What `decide` decides from; there is at least one candidate."""
        lead, replies = block[0], block[1:]
        reply = joined(replies, self._weights.lexicon) if replies else None
        return features_of(lead, reply, candidates, scene)
