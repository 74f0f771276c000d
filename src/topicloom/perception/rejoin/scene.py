"""What is known of the conversation as a whole when a message comes."""

from __future__ import annotations

from dataclasses import dataclass, field

from topicloom.perception.rejoin.signs import Signs

_PACE = 0.1
"""Weight of the newest block in the running rates."""
_LONGEST = 300.0
"""Comparisons over which the usual cosine is averaged."""
_TURNS = 3
"""Times that the word has passed from one to the other before two are taken to be in talk: A, B, A,
B. Two who just came may each be on a matter of their own."""


@dataclass(slots=True)
class Scene:
    """Running figures of a conversation, of constant size."""

    number: int = 0
    """Messages heard."""
    stayed: float = 0.5
    """Share of the recent blocks that stayed with the newest topic."""
    opened: float = 0.3
    """Share of them that opened a topic."""
    run: int = 0
    """Blocks in a row that stayed with the newest topic."""
    usual: float = 0.15
    """Mean cosine of a message to what is kept of the topics."""
    spread: float = 0.12
    """Standard deviation of it."""
    before: Signs | None = None
    """The newest message."""
    _first: str = ""
    _voices: set[str] = field(default_factory=set)
    _turns: int = 0
    _compared: float = 30.0

    def two(self, voice: str) -> bool:
        """Whether all messages, one by `voice` included, are by the same two."""
        return bool(voice) and len(self._voices | {voice}) == 2

    def answers(self, role: str | None, voice: str) -> bool:
        """Whether a message is a reply, and so belongs to the block before it.

        An assistant's is; and between two who have taken turns, what the one says who did not
        begin.
        """
        if self.before is None or role == "user":
            return False
        turns = self._turns + (voice != self.before.voice)
        answered = self.two(voice) and voice != self._first and turns >= _TURNS
        return role == "assistant" or answered

    def heard(self, signs: Signs) -> None:
        """A message came."""
        self.number += 1
        self._first = self._first or signs.voice
        self._turns += self.before is not None and self.before.voice != signs.voice
        if len(self._voices) < 3:
            self._voices.add(signs.voice)
        self.before = signs

    def placed(self, *, stayed: bool, opened: bool) -> None:
        """A block found its topic."""
        self.run = self.run + 1 if stayed else 0
        self.stayed += _PACE * (stayed - self.stayed)
        self.opened += _PACE * (opened - self.opened)

    def compared(self, mean: float | None, spread: float | None) -> None:
        """A message was compared with the topics: move the usual cosine; None moves nothing."""
        if mean is None or spread is None:
            return
        self._compared = min(self._compared + 1, _LONGEST)
        self.usual += (mean - self.usual) / self._compared
        self.spread += (spread - self.spread) / self._compared
