"""How likely a message needs anything from earlier messages.

"ok", "Good night!" and "What is 17 times 23?" need nothing; "And the old ones?" does. A ranking
cannot tell: it has a best message for each of them. So a message is compared with examples of both
kinds by meaning (`prompts/cues/idle_*.txt`, `needing_*.txt`), and with the conversation: what is
near to an earlier message is likelier to need it. So is what says much: small talk and common
knowledge take few words.

The weights are those of a logistic regression, in which questions count eight times: what is
wrongly taken to need nothing is forgotten. `docs/research/recall.md` has figures.

Cosines of another encoder mean something else. They are read as the first encoder would have them:
the same examples stand nearer or farther apart for it, and their cosines become alike in mean and
spread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from topicloom.search.contrast import Contrast
from topicloom.search.embedder import Embedder, Vectors
from topicloom.search.encoders import default_embedder
from topicloom.search.packed_examples import choose_examples, load_contrast
from topicloom.search.words import telling_words

_HISTORY, _KIND, _BIAS = 10.0, 3.6, -5.2
"""Log odds that a message needs something: by the cosine of the earlier message nearest to it, by
half of the distance between the two kinds, and where both are 0 and it says nothing."""


@dataclass(frozen=True, slots=True)
class NeedExamples:
    """Messages that need something, and messages that need nothing, as an encoder sees them."""

    kinds: Contrast
    """The first kind needs something."""
    fitted: Contrast
    """The same as the encoder sees them that the weights are fitted to."""

    def rate(self, text: str, message: Vectors, best: float) -> float:
        """Probability, 0 to 1, that a message needs something from earlier messages.

        Args:
            text: The message.
            message: Its vector [d].
            best: Cosine of the message of the conversation that is nearest to it.
        """
        if not (self.kinds.half and message.any()):
            return 1.0
        return judge_need(self.read_cosine(best), self.kinds.place(message), text)

    def read_cosine(self, cosine: float) -> float:
        """A cosine of the encoder as the one that the weights are fitted to would have it."""
        spreads = (cosine - self.kinds.near) / self.kinds.spread
        return self.fitted.near + self.fitted.spread * spreads


def judge_need(best: float, kind: float, text: str) -> float:
    """Probability that a message needs something from earlier messages.

    Args:
        best: Cosine of the earlier message that is nearest to it.
        kind: Where it lies between the two kinds; see `Contrast.place`.
        text: The message. The odds are as high as it has words that say what it is about.
    """
    words = 1 + len(telling_words(text))
    return words / (words + math.exp(-(_HISTORY * best + _KIND * kind + _BIAS)))


def load_need_examples(embedder: Embedder, text: str) -> NeedExamples | None:
    """The examples that ship for a message, as an encoder sees them; None while it has no vectors.

    Args:
        embedder: The encoder.
        text: The message.
    """
    language = choose_examples(embedder, text)
    kinds = load_contrast(embedder, language)
    if kinds is None:
        return None
    fitted = load_contrast(default_embedder(), language)
    return NeedExamples(kinds, fitted or kinds)
