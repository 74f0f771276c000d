"""A conversation as it comes, each message with the topic it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from topicloom.boundary.cues import Utterance
from topicloom.index.embedder import Vectors
from topicloom.perception.rejoin.rejoiner import Choice, Rejoiner
from topicloom.perception.rejoin.scene import Scene
from topicloom.perception.rejoin.signs import Signs
from topicloom.perception.rejoin.trace import TopicTrace
from topicloom.perception.rejoin.traces import Traces

OPEN_TOPICS = 64
"""Topics that a message may rejoin; the one that rested longest is closed for another."""
MOST_REPLIES = 2
"""Replies after each of which a block is decided on again."""
NOTICE = "system"
"""Role of messages that are no part of any talk: somebody joined, somebody left."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one message belongs, by what was known when it came."""

    topic: int
    """Number of the topic, in the order they open."""
    block: int
    """Number of the block that the message is in."""
    certainty: float
    """Probability of the choice."""


class Chooser(Protocol):
    """Chooses for a block."""

    def __call__(
        self,
        topics: Sequence[int],
        candidates: Sequence[TopicTrace],
        block: Sequence[Signs],
        scene: Scene,
    ) -> Choice:
        """Choose among the topics [n] of these numbers; else as `Rejoiner.decide`."""
        ...


@dataclass(slots=True)
class _Block:
    """The block that is still open, and so is in no topic's trace yet."""

    number: int
    choice: Choice
    signs: list[Signs] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    topic: int = -1
    new: int | None = None


class Threads:
    """Tells the topic of each message when it comes, and never changes its mind afterwards.

    A block is decided on when it opens and again when it is answered. A reply may so go elsewhere
    than the message that it answers; what later blocks are compared with is the last decision.
    """

    def __init__(
        self,
        rejoiner: Rejoiner,
        *,
        open_topics: int = OPEN_TOPICS,
        choose: Chooser | None = None,
    ) -> None:
        """Begin a conversation.

        Args:
            rejoiner: Reads messages, and chooses.
            open_topics: Topics that may be rejoined at any time.
            choose: Chooses instead of the rejoiner: an arbiter, a threshold, a teacher.

        Raises:
            ValueError: `open_topics` is under 1.
        """
        if open_topics < 1:
            raise ValueError(f"need room for at least 1 open topic, got {open_topics=}")
        self._rejoiner = rejoiner
        self._open_topics = open_topics
        self._choose = choose or _of(rejoiner)
        self._store = Traces()
        self._traces: dict[int, TopicTrace] = {}
        self._scene = Scene()
        self._block: _Block | None = None
        self._topics = self._blocks = 0

    def place(self, message: Utterance, vector: Vectors) -> Placement:
        """Take the next message.

        Args:
            message: It.
            vector: Its unit vector [d].
        """
        if message.role == NOTICE:
            return Placement(self._new_topic(), self._new_block(), 1.0)
        signs = self._rejoiner.signs(message, vector)
        block = self._block
        if block is None or not self._scene.answers(message.role, signs.voice):
            self._settle()
            block = self._block = _Block(self._new_block(), Choice(None, np.ones(1)))
        block.signs.append(signs)
        block.numbers.append(self._scene.number)
        if len(block.signs) <= 1 + MOST_REPLIES:
            self._decide(block)
        self._scene.heard(signs)
        return Placement(block.topic, block.number, block.choice.certainty)

    def _decide(self, block: _Block) -> None:
        """Choose a topic for the block, by what there is of it."""
        topics, traces = list(self._traces), list(self._traces.values())
        if traces:
            block.choice = self._choose(topics, traces, block.signs, self._scene)
        if len(block.signs) == 1:
            self._scene.compared(block.choice.usual, block.choice.spread)
        if block.choice.index is not None:
            block.topic = topics[block.choice.index]
            return
        if block.new is None:
            block.new = self._new_topic()
        block.topic = block.new

    def _settle(self) -> None:
        """Put the block that is over into its topic."""
        block = self._block
        if block is None:
            return
        traces = self._traces
        newest = max(traces, key=lambda topic: traces[topic].number, default=None)
        opened = block.topic not in traces
        self._scene.placed(stayed=block.topic == newest, opened=opened)
        if opened and len(traces) == self._open_topics:
            del traces[min(traces, key=lambda topic: traces[topic].number)]
        if opened:
            traces[block.topic] = TopicTrace(self._store)
        trace = traces[block.topic]
        for signs, number in zip(block.signs, block.numbers, strict=True):
            trace.add(signs, number)

    def _new_topic(self) -> int:
        self._topics += 1
        return self._topics - 1

    def _new_block(self) -> int:
        self._blocks += 1
        return self._blocks - 1


def _of(rejoiner: Rejoiner) -> Chooser:
    """The rejoiner's own choice."""

    def choose(
        topics: Sequence[int],
        candidates: Sequence[TopicTrace],
        block: Sequence[Signs],
        scene: Scene,
    ) -> Choice:
        return rejoiner.decide(candidates, block, scene)

    return choose
