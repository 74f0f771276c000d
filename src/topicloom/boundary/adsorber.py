"""The semantic boundary adsorber: does a message continue the open topic, or begin another?

The funnel of spec 001, section 3: a message that says nothing by itself is adsorbed; a screening
rates the others; those that it leaves in the grey zone are put to an arbiter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, Protocol

from topicloom.boundary.detector import Screening
from topicloom.boundary.policy import AdsorberPolicy
from topicloom.state.blocks import LogicalBlock
from topicloom.state.boundary import BoundaryQuestion
from topicloom.state.cues import Cues
from topicloom.state.records import Record
from topicloom.state.script import CJK_RUN, cjk_share

Zone = Literal["filler", "adsorb", "grey", "split"]
"""Where a message fell in the funnel."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the adsorber makes of a message."""

    zone: Zone
    continues: float
    """Probability that the message continues the open topic; 1 for fillers."""
    question: BoundaryQuestion | None = None
    """What to ask an arbiter; only in the grey zone."""

    def opens(self, answer: float | None = None) -> bool:
        """Whether the message begins a topic.

        Args:
            answer: An arbiter's; None to leave the grey zone to the screening's probability.
        """
        if self.zone == "grey":
            return (self.continues if answer is None else answer) < 0.5
        return self.zone == "split"


class Adsorber(Protocol):
    """Tells where topics begin."""

    def judge(self, blocks: Sequence[LogicalBlock], message: Record) -> Verdict:
        """What a user message is, by what is known when it arrives.

        Args:
            blocks: The newest blocks of the conversation, oldest first.
            message: The new message.
        """
        ...

    def segments(self, blocks: Sequence[LogicalBlock]) -> list[int]:
        """The segment of each block, counted from 0, when the tail is split."""
        ...


class SemanticAdsorber:
    """The funnel, over any screening."""

    def __init__(self, screening: Screening, fillers: Cues, policy: AdsorberPolicy) -> None:
        self._screening = screening
        self._fillers = fillers
        self._policy = policy

    def judge(self, blocks: Sequence[LogicalBlock], message: Record) -> Verdict:
        """See `Adsorber.judge`."""
        # Fillers leave the kernel of the open topic alone (spec 001, step 1).
        said = [b for b in blocks if not self._is_filler(b)]
        block = LogicalBlock((message,), blocks[-1].bridge if blocks else "")
        if self._is_filler(block) or not said:
            return Verdict("filler", 1.0)
        rating = self._screening.rate(said, block)
        if rating.score > self._policy.high:
            return Verdict("adsorb", rating.continues)
        if rating.score < self._policy.low:
            return Verdict("split", rating.continues)
        return Verdict("grey", rating.continues, self._question(said, block, rating.continues))

    def segments(self, blocks: Sequence[LogicalBlock]) -> list[int]:
        """See `Adsorber.segments`; the first block begins the first, and a filler none."""
        begins = zip(self._screening.begins(blocks), blocks, strict=True)
        flags = [place > 0 and b and not self._is_filler(x) for place, (b, x) in enumerate(begins)]
        return list(accumulate(map(int, flags)))

    def _question(
        self, said: Sequence[LogicalBlock], block: LogicalBlock, prior: float
    ) -> BoundaryQuestion:
        return BoundaryQuestion(
            summary="\n".join(b.rewritten_query for b in said[-self._policy.memory :]),
            request=block.rewritten_query,
            anchor=block.anchor_text,
            prior=prior,
            language="zh" if cjk_share(block.rewritten_query) > 1 / 3 else "en",
        )

    def _is_filler(self, block: LogicalBlock) -> bool:
        text = block.rewritten_query
        return _tokens(text) < self._policy.filler_tokens or self._fillers.is_all_of(text)


def _tokens(text: str) -> int:
    """Words and CJK characters, about what tokenizers make of a short text."""
    return sum(map(len, CJK_RUN.findall(text))) + len(CJK_RUN.sub(" ", text).split())
