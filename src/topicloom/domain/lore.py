"""Lore: the application's documents, found by meaning and words together, and by their names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

import numpy as np
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from topicloom.background import defer_exit, submit_daemon
from topicloom.domain.curation import Candidate
from topicloom.domain.plan import SearchIntent
from topicloom.domain.sources import NOT_IN_ID, add_keywords, build_word_index, scale_scores
from topicloom.errors import ConfigurationError
from topicloom.search.embedder import Embedder, FixedEmbedder, Vectors, dot_products
from topicloom.search.message_search import SURE_COSINE, SURE_COVER
from topicloom.search.ranking import Floats, standardize
from topicloom.search.sentences import passages_of
from topicloom.search.words import NameFinder
from topicloom.state.safe_text import digest_text
from topicloom.storage.vectors import VectorLog

_UNSURE = 0.05
"""Sureness where there is nothing but chance: enough to keep the order."""
_CHANCE, _CHANCE_GROWS = 0.1, 0.02
"""Similarity of the nearest of n passages to a query that has nothing to do with any of them, and
how it grows with log n: .14 of 8 passages, .24 of 1,000 (small talk against two sets of lore)."""
_SEEDS = 10
"""Best passages whose text is looked through for the names of others."""
_NAMED = 0.2
"""Share of the candidates that may be there only because a seed names them."""
_PASSAGE = 1_000
"""Characters of a passage that a long document is cut into: what the bundled encoder reads."""
_WIDER = 4
"""Times as many hits as candidates that a store of the application is asked for: words choose
among what it gives."""
_BATCH = 8


@dataclass(frozen=True, slots=True)
class LoreMatches:
    """The scores of n passages for a query."""

    passages: Sequence[Candidate]
    names: NameFinder
    dense: Floats
    """[n], similarity in meaning, on any scale."""
    words: Floats
    """[n], BM25."""
    cover: float
    """Share of the query's words that the best holds, 0 to 1."""
    cosine: float | None = None
    """Cosine of the nearest; None where the store does not give it, or nothing can be embedded."""

    @property
    def sureness(self) -> float:
        # Words alone say little, a greeting may stand in some title.
        if self.cosine is None:
            return max(_UNSURE, self.cover / SURE_COVER)
        chance = _CHANCE + _CHANCE_GROWS * math.log(len(self.passages))
        return max(_UNSURE, (self.cosine - chance) / (SURE_COSINE - chance))


class LoreSource:
    """Searches lore in two hops: by the standardised sum of meaning and words, then by names.

    What the first finds often names the thing that is really asked for and says nothing of it.
    """

    def __init__(self, index: LoreIndex) -> None:
        self._index = index

    def search(self, query: str, intent: SearchIntent, limit: int) -> list[Candidate]:
        found = self._index.find(add_keywords(query, intent), limit)
        if not len(found.passages):
            return []
        scores = scale_scores(standardize(found.dense) + standardize(found.words), found.sureness)
        order = np.argsort(-scores, kind="stable").tolist()
        best = _add_named(order, found, limit)
        return [replace(found.passages[row], score=float(scores[row])) for row in best]


def _add_named(order: list[int], found: LoreMatches, limit: int) -> list[int]:
    """The best rows; the last of them make room for others that the first name."""
    rank = {row: n for n, row in enumerate(order)}
    seeds = (found.passages[row].text for row in order[:_SEEDS])
    named = {row for text in seeds for row in found.names.within(text)}
    further = sorted((row for row in named if rank[row] >= limit), key=rank.__getitem__)
    further = further[: int(_NAMED * limit)]
    return order[: limit - len(further)] + further


class DocumentLoreIndex:
    """Documents by the vectors of their passages, with a lexical index beside them.

    They are embedded when first searched; the next process finds the vectors in the log of their
    embedder, if one can be opened.
    """

    def __init__(
        self,
        documents: Iterable[Document],
        embedder: Embedder,
        open_log: Callable[[Embedder], VectorLog] | None = None,
        patience: float | None = None,
    ) -> None:
        """Metadata may have a `title` (or `name`), by which others refer to it, and `tags`.

        A search waits `patience` seconds for vectors and goes by words until there are any; None
        for as long as it takes.

        Raises:
            ConfigurationError: Two documents have the same id.
        """
        self.passages = _build_passages(documents)
        self._embedder = embedder
        self._open_log = open_log
        self._names = NameFinder([p.title for p in self.passages])
        self._words = build_word_index(tuple(self.passages))
        self._patience = patience
        self._vectors: Future[Vectors | None] | None = None
        self._lock = Lock()

    def prepare(self) -> Future[Vectors | None]:
        """Embed what is not embedded yet, in the background; otherwise the first search does.

        Where the encoder is down, a later search does, and until then only words count.
        """
        with self._lock:
            made = self._vectors
            if made is None or (made.done() and (made.exception() or made.result() is None)):
                load = partial(self._load_vectors, FixedEmbedder(self._embedder))
                made = self._vectors = submit_daemon(load)
            return made

    def find(self, query: str, limit: int) -> LoreMatches:
        vectors: Vectors | None = None
        if self.passages:
            with suppress(TimeoutError):
                vectors = self.prepare().result(self._patience)
        words, cover = self._words.scores(query)
        dense = np.zeros(len(self.passages))
        if vectors is not None:
            with defer_exit():
                (vector,) = self._embedder.embed([query])
            dense = dot_products(vectors, vector).astype(float)
        nearest = float(dense.max(initial=0.0)) if dense.any() else None
        return LoreMatches(self.passages, self._names, dense, words, cover, nearest)

    def _load_vectors(self, embedder: Embedder) -> Vectors | None:
        """Vectors [n, d] of the passages; None if the encoder is down."""
        headed = [f"{p.title}: {p.text}" if p.title else p.text for p in self.passages]
        texts = {digest_text(text): text for text in headed}
        log = self._open_log(embedder) if self._open_log else None
        known = dict(zip(*log.load(embedder.dimension), strict=True)) if log else {}
        missing = [key for key in texts if key not in known]
        for start in range(0, len(missing), _BATCH):
            keys = missing[start : start + _BATCH]
            with defer_exit():
                fresh = embedder.embed([texts[key] for key in keys])
            if getattr(self._embedder, "failure", ""):
                return None
            known |= zip(keys, fresh, strict=True)
            if log is not None:
                made = np.flatnonzero(fresh.any(axis=1))
                log.append([keys[i] for i in made], fresh[made])
        return np.stack([known[digest_text(text)] for text in headed])


class VectorStoreLoreIndex:
    """The application's own vector store: scores differ in meaning, so only the order counts."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store

    def find(self, query: str, limit: int) -> LoreMatches:
        hits = self._store.similarity_search(query, k=_WIDER * limit)
        passages = _build_passages(hits, cut=False)
        words, cover = build_word_index(tuple(passages)).scores(query)
        dense = -np.arange(len(passages), dtype=float)
        return LoreMatches(passages, NameFinder([p.title for p in passages]), dense, words, cover)


LoreIndex = DocumentLoreIndex | VectorStoreLoreIndex


def _build_passages(documents: Iterable[Document], *, cut: bool = True) -> list[Candidate]:
    """The passages of documents; with `cut`, several of a long one."""
    found: dict[str, Candidate] = {}
    for number, document in enumerate(documents, start=1):
        name = document.id or (str(number) if cut else digest_text(document.page_content))
        for passage in _cut_document(document, f"lore_{NOT_IN_ID.sub('-', name)}", cut):
            if passage.id in found and cut:
                raise ConfigurationError(
                    f"two documents of the lore have the id {name!r}: give each its own, or none"
                )
            found.setdefault(passage.id, passage)
    return list(found.values())


def _cut_document(document: Document, name: str, cut: bool) -> Iterator[Candidate]:
    title = str(document.metadata.get("title") or document.metadata.get("name") or "")
    listed = document.metadata.get("tags")
    tags = tuple(map(str, listed)) if isinstance(listed, list | tuple) else ()
    texts = passages_of(document.page_content, _PASSAGE) if cut else [document.page_content]
    for part, text in enumerate(texts, start=1):
        yield Candidate(
            id=name if len(texts) == 1 else f"{name}.{part}",
            kind="lore",
            text=text,
            title=title,
            tags=tags,
            knowledge=True,
        )
