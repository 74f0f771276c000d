"""Flat search: messages that score highest by words, by vectors or by both fill the budget."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from langchain_core.messages import SystemMessage
from langgraph.store.memory import InMemoryStore
from numpy.typing import NDArray

from topicloom import Embedder
from topicloom.lab import CJK_RUN, LangChainEmbeddings, Vectors
from topicloom_app.recordings.conversations import RecordedMessage
from topicloom_lab.strategies.base import Context, Strategy, StrategyOptions, cost_of, line_of

K1, B = 1.5, 0.75
"""Saturation and length normalisation (Robertson and Zaragoza, 2009)."""

Words = Callable[[str], list[str]]

_WORD = re.compile(r"\w+")


def plain_words(text: str) -> list[str]:
    """Runs of letters and digits in lower case; of CJK runs, characters and pairs."""
    spaced = CJK_RUN.sub(lambda run: f" {' '.join(_grams(run[0]))} ", text.lower())
    return _WORD.findall(spaced)


def _grams(run: str) -> Sequence[str]:
    return [*run, *(run[i : i + 2] for i in range(len(run) - 1))]


class Bm25:
    """Postings of texts: a text once added stays as it is.

    `topicloom.search.bm25` takes endings off, leaves function words out and scores by the best
    passage. A baseline should be what others would use.
    """

    def __init__(self, words: Words = plain_words) -> None:
        """An empty index, with what cuts texts and queries into words."""
        self._words = words
        self._lengths = array("i")
        self._postings: dict[str, tuple[array[int], array[float]]] = {}

    def add(self, text: str) -> None:
        """Add the next text."""
        words = self._words(text)
        for word, count in Counter(words).items():
            places, counts = self._postings.setdefault(word, (array("i"), array("f")))
            places.append(len(self._lengths))
            counts.append(count)
        self._lengths.append(len(words))

    def scores(self, query: str) -> NDArray[np.float64]:
        """Scores [n] of all texts, in the order they were added; at least 0."""
        lengths = np.array(self._lengths, dtype=float)
        found = np.zeros(len(lengths))
        if not len(lengths):
            return found
        norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1e-9))
        for word, times in Counter(self._words(query)).items():
            if word in self._postings:
                places, counts = (np.array(a) for a in self._postings[word])
                holding = len(places)
                idf = math.log(1 + (len(lengths) - holding + 0.5) / (holding + 0.5))
                found[places] += times * idf * counts * (K1 + 1) / (counts + norm[places])
        return found


Scores = NDArray[np.float64]

_CARRIED = 300
"""Characters of a message that are searched with the next one: encoders read little more."""


class Scorer(Protocol):
    """Says how well each message fits a question."""

    def add(self, messages: Sequence[RecordedMessage]) -> None:
        """Hear the next messages."""
        ...

    def scores(self, question: str) -> Scores:
        """Scores [n] of all messages heard; higher is better."""
        ...


class SearchStrategy(Strategy):
    """A strategy that quotes the messages that score highest."""

    def __init__(self, scorer: Scorer, *, neighbours: int = 0, users_only: bool = False) -> None:
        """A search by a scorer, which quotes so many messages before and after each that it finds.

        With `users_only` just what the user said is quoted.
        """
        super().__init__()
        self._scorer = scorer
        self._neighbours = neighbours
        self._users_only = users_only

    def feed(self, messages: Sequence[RecordedMessage]) -> Mapping[str, int]:
        """See `Strategy.feed`."""
        self._scorer.add(messages)
        return super().feed(messages)

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        order = np.argsort(-self._scorer.scores(question), kind="stable")
        return quoted(self._messages, self._candidates(order), budget)

    def _candidates(self, order: NDArray[np.intp]) -> Iterator[int]:
        for place in map(int, order):
            if self._users_only and self._messages[place].role != "user":
                continue
            yield place
            for distance in range(1, self._neighbours + 1):
                yield place - distance
                yield place + distance


def quoted(messages: Sequence[RecordedMessage], ranked: Iterable[int], budget: int) -> Context:
    """A context of the best messages that fit, in conversation order.

    A message that does not fit is passed over: shorter ones behind it may. Places in `ranked`,
    best first, may come twice or lie outside.
    """
    chosen: set[int] = set()
    for place in ranked:
        if place in chosen or not 0 <= place < len(messages):
            continue
        cost = cost_of(messages[place])
        if cost <= budget:
            chosen.add(place)
            budget -= cost
    shown = [messages[place] for place in sorted(chosen)]
    text = "\n".join(map(line_of, shown))
    return Context((SystemMessage(text),) if text else (), tuple(m.id for m in shown))


class Lexical:
    """BM25 of messages; `previous` searches each together with the one before it."""

    def __init__(self, words: Words = plain_words, *, previous: bool = False) -> None:
        self._index = Bm25(words)
        self._pairs = Pairs(previous)

    def add(self, messages: Sequence[RecordedMessage]) -> None:
        """See `Scorer.add`."""
        for text in self._pairs.texts(list(map(line_of, messages))):
            self._index.add(text)

    def scores(self, question: str) -> Scores:
        """See `Scorer.scores`."""
        return self._index.scores(question)


class Dense:
    """Cosine of a message's vector to the question's; `previous` as of `Lexical`."""

    def __init__(self, embedder: Embedder, *, previous: bool = False) -> None:
        self._embedder = embedder
        self._pairs = Pairs(previous)
        self._vectors: list[Vectors] = []

    def add(self, messages: Sequence[RecordedMessage]) -> None:
        """See `Scorer.add`."""
        self._vectors.append(self._embedder.embed(self._pairs.texts(list(map(line_of, messages)))))

    def scores(self, question: str) -> Scores:
        """See `Scorer.scores`."""
        self._vectors = [np.concatenate(self._vectors)] if self._vectors else []
        asked = self._embedder.embed([question])[0]
        return np.asarray(self._vectors[0] @ asked if self._vectors else [], dtype=float)


@dataclass(frozen=True, slots=True)
class Mixed:
    """Weighted sum of standardised scores."""

    parts: Sequence[tuple[float, Scorer]]
    """Weights and scorers."""

    def add(self, messages: Sequence[RecordedMessage]) -> None:
        """See `Scorer.add`."""
        for _, scorer in self.parts:
            scorer.add(messages)

    def scores(self, question: str) -> Scores:
        """See `Scorer.scores`."""
        return np.asarray(
            sum(weight * _standard(scorer.scores(question)) for weight, scorer in self.parts)
        )


def hybrid(embedder: Embedder) -> Mixed:
    """The strongest flat search that was measured on LoCoMo; its weights were set by hand there."""
    return Mixed(
        (
            (1.0, Dense(embedder)),
            (1.0, Dense(embedder, previous=True)),
            (0.5, Lexical()),
            (0.5, Lexical(previous=True)),
        )
    )


class Pairs:
    """Joins each text with the end of the one before it, across calls."""

    def __init__(self, previous: bool) -> None:
        self._previous = previous
        self._last = ""

    def texts(self, texts: Sequence[str]) -> list[str]:
        """The texts, each behind the one before it if that is wanted."""
        before = [t[-_CARRIED:] for t in (self._last, *texts[:-1])]
        self._last = texts[-1] if texts else self._last
        if not self._previous:
            return list(texts)
        return [f"{b} | {t}" if b else t for b, t in zip(before, texts, strict=True)]


def _standard(values: Scores) -> Scores:
    spread = float(values.std()) if len(values) else 0.0
    centred: Scores = values - values.mean() if len(values) else values
    return centred / spread if spread > 1e-9 else centred


_NAMESPACE = ("messages",)


class StoreSearch(Strategy):
    """`InMemoryStore` with an index; what it finds fills the budget, best first."""

    def __init__(self, options: StrategyOptions) -> None:
        """An empty store; the options' embedder makes its index."""
        super().__init__()
        embeddings = LangChainEmbeddings(options.embedder)
        self._store = InMemoryStore(
            index={"dims": options.embedder.dimension, "embed": embeddings, "fields": ["text"]}
        )

    def feed(self, messages: Sequence[RecordedMessage]) -> Mapping[str, int]:
        """See `Strategy.feed`."""
        for place, message in enumerate(messages, start=len(self._messages)):
            self._store.put(_NAMESPACE, str(place), {"text": line_of(message)})
        return super().feed(messages)

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        found = self._store.search(_NAMESPACE, query=question, limit=len(self._messages) or 1)
        return quoted(self._messages, (int(item.key) for item in found), budget)
