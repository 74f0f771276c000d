"""How likely a message needs anything from earlier messages.

"ok", "Good night!" and "What is 17 times 23?" need nothing; "And the old ones?" does. A ranking
cannot tell: it has a best message for each of them. So a message is compared with examples of both
kinds by meaning (`prompts/cues/idle_*.txt`, `needing_*.txt`), and with the conversation: what is
near to an earlier message is likelier to need it.

The weights were chosen with questions of seven sets of conversations, with messages that have words
of these conversations and need nothing, and with the examples themselves, each left out where it is
compared. A logistic regression gives 9.8, 3.6 and -1.9 where questions count eight times, since
what is wrongly taken to need nothing is forgotten. Those that ship leave about as few questions
without recall, and more messages that need nothing. `docs/research/recall.md` has figures, with
each set left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from topicloom.index.contrast import Contrast
from topicloom.index.embedder import Embedder, Vectors
from topicloom.index.encoders import default_embedder
from topicloom.index.packed_examples import load_contrast

_HISTORY, _KIND, _BIAS = 12.0, 4.4, -2.8
"""Log odds that a message needs something: by the cosine of the earlier message nearest to it, by
half of the distance between the two kinds, and where both are 0."""
_USUAL = 0.55
"""That cosine where the encoder is not the one that the weights are fitted to, whose cosines mean
something else. It is high: in doubt a message needs something."""


@dataclass(frozen=True, slots=True)
class NeedExamples:
    """Messages that need something, and messages that need nothing, as an encoder sees them."""

    kinds: Contrast
    """The first kind needs something."""
    fitted: bool
    """True if the weights are fitted to the encoder."""

    def rate(self, message: Vectors, best: float) -> float:
        """Probability, 0 to 1, that a message needs something from earlier messages.

        Args:
            message: Its vector [d].
            best: Cosine of the message of the conversation that is nearest to it.
        """
        if not (self.kinds.half and message.any()):
            return 1.0
        return judge_need(best if self.fitted else _USUAL, self.kinds.place(message))


def judge_need(best: float, kind: float) -> float:
    """Probability that a message needs something from earlier messages.

    Args:
        best: Cosine of the earlier message that is nearest to it.
        kind: Where it lies between the two kinds; see `Contrast.place`.
    """
    return 1 / (1 + math.exp(-(_HISTORY * best + _KIND * kind + _BIAS)))


def load_need_examples(embedder: Embedder) -> NeedExamples | None:
    """The examples that ship, as an encoder sees them; None while it has no vectors for them."""
    kinds = load_contrast(embedder, "needing", "idle")
    fitted = embedder.fingerprint == default_embedder().fingerprint
    return NeedExamples(kinds, fitted) if kinds else None
