"""The semantic boundary adsorber: does a message continue the open topic, or begin another?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from topicloom.perception.embedder import Embedder, Vectors, unit_rows
from topicloom.state.blocks import LogicalBlock
from topicloom.state.cues import Cues
from topicloom.state.records import Record, hours_between
from topicloom.state.script import cjk_share


class Adsorber(Protocol):
    """Tells where topics begin."""

    def opens(self, blocks: Sequence[LogicalBlock], message: Record) -> bool:
        """Whether a user message begins a topic, by what is known when it arrives.

        Args:
            blocks: The newest blocks of the conversation, oldest first.
            message: The new message, its text with references resolved.
        """
        ...

    def segments(self, blocks: Sequence[LogicalBlock]) -> list[int]:
        """The segment of each block, counted from 0, when the tail is split."""
        ...


class AdsorberPolicy(BaseModel):
    """The funnel of spec 001, section 3, with the thresholds of the encoder that ships.

    The spec's 0.75 and 0.40 belong to another encoder. With this one a message has a cosine of
    about 0.4 to the block it continues, and CJK text, which is compared by its characters, of
    about 0.2.
    """

    model_config = ConfigDict(frozen=True)

    memory: int = Field(2, ge=1)
    """Blocks that a new message is compared with; the nearest counts."""
    low: float = 0.2
    """Similarity below which a topic begins."""
    low_cjk: float = 0.1
    """The same for text that is mostly CJK."""
    pause_hours: float = Field(6.0, gt=0)
    """A pause after which a message has to be nearer to continue: people come back with news."""
    pause_factor: float = Field(2.0, ge=1)
    """How much nearer, as a factor on `low`."""
    filler_characters: int = 6
    """A message this short says nothing about its topic (spec 001: under 5 tokens)."""


class SemanticAdsorber:
    """Compares a new message with the last blocks, replies included."""

    def __init__(
        self, embedder: Embedder, fillers: Cues, policy: AdsorberPolicy | None = None
    ) -> None:
        self._embedder = embedder
        self._fillers = fillers
        self._policy = policy or AdsorberPolicy()

    def opens(self, blocks: Sequence[LogicalBlock], message: Record) -> bool:
        """See `Adsorber.opens`."""
        said = [b for b in blocks if not self._is_filler(b.records[0])][-self._policy.memory :]
        if self._is_filler(message) or not said:
            return False
        # The bare text, as it is searched with later in the turn: it is embedded once.
        vector = self._embedder.embed([message.text])[0]
        nearest = float(np.max(block_vectors(said, self._embedder) @ vector))
        return nearest < self._low(message, hours_between(blocks[-1].records[-1], message))

    def _low(self, message: Record, pause: float) -> float:
        policy = self._policy
        low = policy.low_cjk if cjk_share(message.text[:2_000]) > 0.4 else policy.low
        return low * policy.pause_factor if pause >= policy.pause_hours else low

    def segments(self, blocks: Sequence[LogicalBlock]) -> list[int]:
        """See `Adsorber.segments`: by what was seen as the messages came."""
        return list(accumulate(int(place > 0 and b.opens) for place, b in enumerate(blocks)))

    def _is_filler(self, record: Record) -> bool:
        text = record.text.strip()
        return len(text) < self._policy.filler_characters or self._fillers.is_all_of(text)


def block_vectors(blocks: Sequence[LogicalBlock], embedder: Embedder) -> Vectors:
    """Mean vector of each block's messages, as unit rows [blocks, d]."""
    # A user message by its bare text, as it was embedded when it came.
    texts = [r.text if r.role == "user" else r.line for b in blocks for r in b.records]
    flat = embedder.embed(texts)
    owner = np.repeat(np.arange(len(blocks)), [len(b.records) for b in blocks])
    sums = np.zeros((len(blocks), embedder.dimension), dtype=np.float32)
    np.add.at(sums, owner, flat)
    return unit_rows(sums)
