"""The sentences that a reply rests on, of the messages that its turn quoted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from topicloom import Embedder, StoredMessage
from topicloom.hosting import clip, sentences_of, telling_words

_QUOTED, _SENTENCES, _CANDIDATES, _REPLY = 100, 60, 3, 30
"""Messages that are looked at, sentences of each, those of them whose meaning is compared, and
sentences of the reply."""
_LONGEST = 300
"""Characters of a sentence that is shown."""
_SHARED = 0.5
"""Weight of shared words beside the cosine of two sentences."""
_ASKED = 0.5
"""Weight of the question beside the reply."""
_FULL = 5
"""Words from which on a sentence tells no more for having more of them."""
_EDGES = " \t\n\u3000。！？!?…·•–-"
"""What the sentence before may have left at the beginning of one."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The sentence of a message that says most of what a reply says."""

    message: StoredMessage
    sentence: str
    score: float
    """How much it says of it; comparable within one reply alone."""


def find_grounds(
    question: str, reply: str, quoted: Sequence[StoredMessage], embedder: Embedder
) -> list[Ground]:
    """One sentence of each quoted message, those that the reply rests on most first.

    A sentence is compared with each sentence of the reply, by meaning and by words; the question
    counts less. Because meaning counts, a quote may be in another language.

    Args:
        question: The message that was answered.
        reply: The answer; "" where there is none.
        quoted: The messages whose originals the prompt of the turn had.
        embedder: Compares sentences by meaning.
    """
    wanted = telling_words(f"{reply}\n{question}")
    candidates = [
        (message, sentence)
        for message in quoted[:_QUOTED]
        for sentence in _choose_candidates(message.text, wanted)
    ]
    said = [*_split(reply, _REPLY), question]
    vectors = embedder.embed([*said, *(sentence for _, sentence in candidates)])
    likeness = vectors[len(said) :] @ vectors[: len(said)].T
    words = [telling_words(text) for text in said]
    best = dict[int, Ground]()
    for row, (message, sentence) in enumerate(candidates):
        own = telling_words(sentence)
        near = [
            float(likeness[row, place]) + _SHARED * len(own & there) / max(_FULL, len(own))
            for place, there in enumerate(words)
        ]
        score = (max(near[:-1], default=0.0) + _ASKED * near[-1]) * _weigh_length(own)
        if message.seq not in best or best[message.seq].score < score:
            best[message.seq] = Ground(message, clip(sentence, _LONGEST), score)
    return sorted(best.values(), key=lambda ground: -ground.score)


def _choose_candidates(text: str, wanted: frozenset[str]) -> list[str]:
    """The sentences of a message with most of the wanted words; the first ones are as good."""
    sentences = _split(text, _SENTENCES) or [text]
    shared = np.array([len(telling_words(sentence) & wanted) for sentence in sentences])
    return [sentences[i] for i in np.argsort(-shared, kind="stable")[:_CANDIDATES]]


def _split(text: str, most: int) -> list[str]:
    spans = islice(sentences_of(text), most)
    found = (text[begin:end].rstrip().lstrip(_EDGES) for begin, end in spans)
    return [sentence for sentence in found if sentence]


def _weigh_length(words: frozenset[str]) -> float:
    """The weight of a sentence: one of a word or two is near to much, and says little."""
    return min(len(words), _FULL) / _FULL
