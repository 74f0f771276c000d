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
from threading import Lock

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from topicloom.index.embedder import Embedder, Vectors, dot_products
from topicloom.index.encoders import default_embedder
from topicloom.index.packed_examples import KINDS, load_examples, read_packed

_NEAREST = 16
"""Examples of a kind that say how near it is."""
_HISTORY, _KIND, _BIAS = 12.0, 4.4, -2.8
"""Log odds that a message needs something: by the cosine of the earlier message nearest to it, by
half of the distance between the two kinds, and where both are 0."""
_USUAL = 0.55
"""That cosine where the encoder is not the one that the weights are fitted to, whose cosines mean
something else. It is high: in doubt a message needs something."""
_APART = 2.0
"""Spreads between the means of the two kinds, at least: an encoder that shows less cannot tell them
apart."""


@dataclass(frozen=True, slots=True)
class NeedExamples:
    """Messages of both kinds as an encoder sees them."""

    idle: Vectors
    """Those that need nothing [i, d]."""
    needing: Vectors
    """Those that need something [n, d]."""
    middle: float
    """Where the middle between the kinds lies; from one kind to the other."""
    half: float
    """Half of the distance between them; 0 if the encoder cannot tell them apart."""
    fitted: bool
    """True if the weights are fitted to the encoder."""

    def rate(self, message: Vectors, best: float) -> float:
        """Probability, 0 to 1, that a message needs something from earlier messages.

        Args:
            message: Its vector [d].
            best: Cosine of the message of the conversation that is nearest to it.
        """
        if not (self.half and message.any()):
            return 1.0
        near = (nearness(dot_products(rows, message)) for rows in (self.needing, self.idle))
        return self.judge(best if self.fitted else _USUAL, float(next(near) - next(near)))

    def judge(self, best: float, lean: float) -> float:
        """The same, of a message that is so much nearer to those that need something."""
        kind = (lean - self.middle) / self.half
        return 1 / (1 + math.exp(-(_HISTORY * best + _KIND * kind + _BIAS)))


def make_need_examples(idle: Vectors, needing: Vectors, *, fitted: bool) -> NeedExamples:
    """Examples from the vectors of messages that need nothing [i, d] and something [n, d]."""
    leans = [-_lean_of_each(idle, needing), _lean_of_each(needing, idle)]
    low, high = (float(lean.mean()) for lean in leans)
    spread = max(float(lean.std()) for lean in leans)
    apart = high - low >= _APART * spread > 0
    return NeedExamples(idle, needing, (low + high) / 2, (high - low) / 2 if apart else 0.0, fitted)


def load_need_examples(embedder: Embedder) -> NeedExamples | None:
    """The examples that ship, as an encoder sees them; None while it has no vectors for them.

    Those of the encoder that ships are read; others are embedded once a process.
    """
    key = embedder.fingerprint
    with _LOADING:
        found = _LOADED.get(key)
        if found is None:
            texts = load_examples()
            vectors = read_packed(key, texts) or {k: embedder.embed(texts[k]) for k in KINDS}
            idle, needing = (vectors[kind][vectors[kind].any(axis=1)] for kind in KINDS)
            if min(len(idle), len(needing)) <= _NEAREST:
                return None  # its provider may be back later
            fitted = key == default_embedder().fingerprint
            found = _LOADED[key] = make_need_examples(idle, needing, fitted=fitted)
        return found


_LOADED: LRUCache[str, NeedExamples] = LRUCache(4)
_LOADING = Lock()


def _lean_of_each(own: Vectors, others: Vectors) -> NDArray[np.float32]:
    """How much nearer each message [n, d] is to others of its own kind than to the other kind."""
    alike = dot_products(own, own)
    np.fill_diagonal(alike, -1)
    return nearness(alike) - nearness(dot_products(own, others))


def nearness(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean of the `_NEAREST` highest of some cosines [..., n] along the last axis."""
    most = cosines.shape[-1] - _NEAREST
    return np.asarray(np.partition(cosines, most, axis=-1)[..., most:].mean(axis=-1))
