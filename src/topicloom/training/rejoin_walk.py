"""Walking through a conversation with a teacher beside: what was seen, and what was right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.perception.rejoin.features import Features
from topicloom.perception.rejoin.rejoiner import Choice, Rejoiner
from topicloom.perception.rejoin.scene import Scene
from topicloom.perception.rejoin.signs import Signs
from topicloom.perception.rejoin.threads import Placement, Threads
from topicloom.perception.rejoin.trace import TopicTrace
from topicloom.training.rejoin_corpus import Talk

_FOREIGN = 0.3
"""Cost of a message of another topic, where one of the right topic counts 1: what a topic has to
hold so that going there is better than to open another. Higher, and errors scatter a topic."""


@dataclass(frozen=True, slots=True)
class Example:
    """One decision."""

    kind: str
    """What kind of conversation it is from: kinds count alike."""
    features: Features
    """What it was made from, n topics."""
    target: int
    """The right topic; n for a new one."""


def walk(
    talk: Talk, rejoiner: Rejoiner, *, forced: bool, skipped: Collection[str | None] = ()
) -> list[Example]:
    """Decisions of a conversation in which a teacher says what is right after what came before.

    Args:
        talk: The conversation.
        rejoiner: Reads it.
        forced: Whether what is right is also done (teacher forcing). Otherwise the rejoiner does
            what it would, and learns to go on from there (DAgger, Ross et al. 2011).
        skipped: Topics that are not learned from.
    """
    teacher = _Teacher(talk, rejoiner, forced)
    threads = Threads(rejoiner, choose=teacher)
    for place, (said, vector) in enumerate(zip(talk.said, talk.vectors, strict=True)):
        teacher.place = place
        teacher.note(threads.place(said, vector))
    return [example for thread, example in teacher.examples if thread not in skipped]


class _Teacher:
    """Chooser that knows the right topics."""

    def __init__(self, talk: Talk, rejoiner: Rejoiner, forced: bool) -> None:
        self.place = 0
        self.examples: list[tuple[str | None, Example]] = []
        self._talk = talk
        self._rejoiner = rejoiner
        self._forced = forced
        self._held: defaultdict[int, Counter[str | None]] = defaultdict(Counter)
        self._open: list[str | None] = []
        self._last: Placement | None = None

    def __call__(
        self,
        topics: Sequence[int],
        candidates: Sequence[TopicTrace],
        block: Sequence[Signs],
        scene: Scene,
    ) -> Choice:
        """See `threads.Chooser`."""
        if len(block) == 1:
            self._settle()
        thread = self._talk.gold[self.place]
        target = self._target(topics, thread)
        features = self._rejoiner.features(candidates, block, scene)
        if thread is not None:
            self.examples.append((thread, Example(self._talk.kind, features, target)))
        if self._forced:
            found: NDArray[np.float64] = np.zeros(len(topics) + 1)
            found[target] = 1.0
        else:
            found = self._rejoiner.probabilities(features)
        best = int(found.argmax())
        index = best if best < len(topics) else None
        return Choice(index, found, features.usual, features.spread)

    def note(self, placement: Placement) -> None:
        """What became of the message at `place`."""
        if self._last is not None and self._last.block != placement.block:
            self._settle()
        self._last = placement
        self._open.append(self._talk.gold[self.place])

    def _settle(self) -> None:
        """Count the messages of the block that is over to its topic."""
        if self._last is not None:
            self._held[self._last.topic].update(self._open)
        self._open = []

    def _target(self, topics: Sequence[int], thread: str | None) -> int:
        """The topic that going to gains most, if any gains."""
        gains = [
            (1 + _FOREIGN) * self._held[t][thread] - _FOREIGN * self._held[t].total()
            for t in topics
        ]
        best = int(np.argmax(gains))
        return best if gains[best] > 0 else len(topics)
