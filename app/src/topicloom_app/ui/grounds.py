"""The sentences that a reply rests on, of the messages that its prompt held."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np

from topicloom import Embedder, StoredMessage
from topicloom.hosting import clip, sentences_of, strip_own_replies, telling_words

Place = Literal["quoted", "quoted_before", "in_view"]
"""The way a message came into a prompt: quoted in this turn, or in an earlier one, or not moved
into a topic yet."""
_MESSAGES, _SENTENCES, _CANDIDATES, _REPLY = 100, 60, 3, 30
"""Messages whose meaning is compared, sentences of each, those of them that are compared, and
sentences of the reply."""
_LONGEST = 300
"""Characters of a sentence that is shown."""
_SHARED = 0.5
"""Weight of shared words beside the cosine of two sentences."""
_FULL = 5
"""Words from which on a sentence tells no more for having more of them."""
_LEAD, _LEAST = 5, 0.6
"""Messages that a model's reply rests on at most; the least score of one, by itself and as a share
of the best. With .5, a good night rests on a run in the rain."""
_EDGES = " \t\n\u3000。！？!?…·•–-"
"""What the sentence before may have left at the beginning of one."""
_QUOTATION = re.compile(r"“(.+)”|「(.+)」|\"(.+?)\"")


@dataclass(frozen=True, slots=True)
class Ground:
    """The sentence of a message that says most of what a reply says."""

    message: StoredMessage
    place: Place
    sentence: str
    says: str
    """The sentence of the reply that rests on it; "" if none does."""


def find_grounds(
    question: str,
    reply: str,
    shown: Mapping[Place, Sequence[StoredMessage]],
    embedder: Embedder,
    *,
    only_quotes: bool = False,
) -> list[Ground]:
    """The messages that a reply rests on, best first, then the others that its turn quoted.

    A reply rests on what it quotes word for word or names by its id. A model's reply also rests on
    what comes near to one of its sentences, by meaning and by words. Because meaning counts, a
    message may be in another language.

    Args:
        question: The message that was answered.
        reply: The answer; "" where there is none.
        shown: The messages whose originals the prompt had, the likeliest first.
        embedder: Compares sentences by meaning.
        only_quotes: True for a reply without a model, which is its quotes and nothing else.
    """
    places = {m.seq: place for place, messages in [*shown.items()][::-1] for m in messages}
    messages = list({m.seq: m for group in shown.values() for m in group}.values())
    certain = [
        g for m in messages for g in _find_quoted(m, places[m.seq], reply, dated=only_quotes)
    ]
    certain.sort(key=lambda ground: reply.find(ground.says))
    known = {ground.message.seq for ground in certain}
    others = [m for m in messages if m.seq not in known][:_MESSAGES]
    near = _rank_near(question, reply, others, places, embedder)
    least = max(_LEAST, _LEAST * near[0][0]) if near else 0.0
    lead = 0 if only_quotes else max(0, _LEAD - len(certain))
    led = [ground for score, ground in near[:lead] if ground.says and score >= least]
    rest = [ground for _, ground in near[len(led) :] if ground.place == "quoted"]
    return [*certain, *led, *(Ground(g.message, g.place, g.sentence, "") for g in rest)]


def _find_quoted(message: StoredMessage, place: Place, reply: str, *, dated: bool) -> list[Ground]:
    """The message, if a sentence of the reply names its id or a line quotes it: with its day, if
    lines are `dated`, else some words of it."""
    text = " ".join(strip_own_replies(message.text).split())
    for line in filter(None, reply.splitlines()):
        for found in _QUOTATION.finditer(line):
            quote = next(filter(None, found.groups())).rstrip("…").strip()
            told = message.day in line if dated else len(telling_words(quote)) >= _FULL
            if told and quote in text:
                return [Ground(message, place, clip(quote, _LONGEST), quote)]
    if f"[{message.id}]" in reply:
        says = next(s for s in _split(reply, len(reply)) if f"[{message.id}]" in s)
        best = max(_split(message.text, _SENTENCES), key=_count_shared(says), default=message.text)
        return [Ground(message, place, clip(best, _LONGEST), says)]
    return []


def _rank_near(
    question: str,
    reply: str,
    messages: Sequence[StoredMessage],
    places: Mapping[int, Place],
    embedder: Embedder,
) -> list[tuple[float, Ground]]:
    """One sentence of each message, with its score, those nearest to the reply first."""
    parts = _split(reply, _REPLY)
    # A few words, such as "At nine.", say little without what they answer.
    said = parts if len(telling_words(reply)) >= _FULL else [f"{question} {reply}"]
    candidates = [
        (message, sentence)
        for message in messages
        for sentence in _choose_candidates(message.text, f"{reply}\n{question}")
    ]
    vectors = embedder.embed([*said, *(sentence for _, sentence in candidates)])
    likeness = vectors[len(said) :] @ vectors[: len(said)].T
    words = [telling_words(text) for text in said]
    best = dict[int, tuple[float, Ground]]()
    for row, (message, sentence) in enumerate(candidates):
        own = telling_words(sentence)
        shared = np.array([len(own & there) for there in words]) / max(_FULL, len(own))
        near = likeness[row] + _SHARED * shared
        score = float(near.max()) * min(len(own), _FULL) / _FULL  # a word or two is near to much
        if message.seq not in best or best[message.seq][0] < score:
            says = parts[min(int(near.argmax()), len(parts) - 1)] if parts else ""
            ground = Ground(message, places[message.seq], clip(sentence, _LONGEST), says)
            best[message.seq] = score, ground
    return sorted(best.values(), key=lambda pair: -pair[0])


def _choose_candidates(text: str, wanted: str) -> list[str]:
    """The sentences of a message with most of the wanted words; the first ones are as good."""
    count = _count_shared(wanted)
    sentences = _split(text, _SENTENCES) or [text]
    return sorted(sentences, key=lambda sentence: -count(sentence))[:_CANDIDATES]


def _count_shared(wanted: str) -> Callable[[str], int]:
    """Counts the words of a sentence that a text has as well."""
    words = telling_words(wanted)
    return lambda sentence: len(telling_words(sentence) & words)


def _split(text: str, most: int) -> list[str]:
    spans = islice(sentences_of(text), most)
    found = (text[begin:end].rstrip().lstrip(_EDGES) for begin, end in spans)
    return [sentence for sentence in found if sentence]
