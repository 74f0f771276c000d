"""Shelves of lore: the application's documents in FAISS, or a vector store of its own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from hashlib import sha256
from threading import Event, RLock
from typing import TYPE_CHECKING

import numpy as np
from langchain_core.documents import Document
from langchain_core.vectorstores import VectorStore

from topicloom.background import defer_exit
from topicloom.domain.lore import LoreMatches, Passage
from topicloom.domain.sources import build_word_index
from topicloom.errors import ConfigurationError
from topicloom.index.bm25 import passages_of
from topicloom.index.embedder import Embedder, Vectors
from topicloom.index.encoders import LangChainEmbeddings
from topicloom.index.ranking import Floats
from topicloom.index.words import NameFinder
from topicloom.storage.vectors import VectorLog

if TYPE_CHECKING:
    from langchain_community.vectorstores import FAISS

_PASSAGE = 1_000
"""Characters of a passage that a long document is cut into: what the bundled encoder reads."""
_NEAREST = 1_000
"""Passages that the vector store is asked for; those further away count as the last of these."""
_WIDER = 4
"""Times as many hits as candidates that a store of the application is asked for: words choose
among what it gives."""
_BATCH = 8
"""Texts that are embedded before looking whether to go on."""
_NOT_IN_ID = re.compile(r"[^\w.-]+")
_SUNSET = "`langchain-community` is being sunset"


class DocumentLoreIndex:
    """Documents in a LangChain FAISS store, with a lexical index beside it.

    Everything is made of the documents, when they are first searched; nothing is ever unpickled.
    Vectors are kept in a log, if one is given, so that the next process finds them there.
    """

    def __init__(
        self, documents: Iterable[Document], embedder: Embedder, vectors: VectorLog | None = None
    ) -> None:
        """Args:
        documents: Metadata may have a `title` (or `name`), by which others refer to it, and
            `tags`. Ids, if there are any, have to be unique.
        embedder: Makes the vectors.
        vectors: Keeps them.

        Raises:
            ConfigurationError: Two documents have the same id.
        """
        self.passages = _build_passages(documents)
        """What stands on it."""
        self._embedder = embedder
        self._log = vectors
        self._rows = {p.id: row for row, p in enumerate(self.passages)}
        self._names = NameFinder([p.title for p in self.passages])
        self._words = build_word_index(tuple((p.title, p.text) for p in self.passages))
        # Here, and not in the thread that searches first: warnings are filtered by the process.
        self._faiss = _import_faiss()
        self._store: VectorStore | None = None
        self._lock = RLock()
        self._closed = Event()

    def prepare(self) -> None:
        """Embed what is not embedded yet, and build the store; otherwise the first search does.

        Raises:
            CancelledError: The shelf was closed meanwhile.
        """
        with self._lock:
            if self._store is None and self.passages:
                self._store = self._built(self._vectors().tolist())

    def _built(self, vectors: list[list[float]]) -> VectorStore:
        """A store of inner products over unit vectors, which are cosines."""
        with defer_exit():
            store: VectorStore = self._faiss.from_embeddings(
                zip([p.headed for p in self.passages], vectors, strict=True),
                LangChainEmbeddings(self._embedder),
                ids=[p.id for p in self.passages],
                distance_strategy="MAX_INNER_PRODUCT",
            )
        return store

    def find(self, query: str, limit: int) -> LoreMatches:
        """See `Shelf.find`."""
        self.prepare()
        words, cover = self._words.scores(query)
        dense = self._dense(query)
        nearest = float(dense.max(initial=0.0))
        return LoreMatches(self.passages, self._names, dense, words, cover, nearest)

    def close(self) -> None:
        """Stop embedding, if that is being done."""
        self._closed.set()

    def _dense(self, query: str) -> Floats:
        if self._store is None:
            return np.zeros(0)
        nearest = min(_NEAREST, len(self.passages))
        with defer_exit():
            hits = self._store.similarity_search_with_score(query, k=nearest)
        dense = np.full(len(self.passages), min(score for _, score in hits), dtype=float)
        for document, score in hits:
            dense[self._rows[str(document.id)]] = score
        return dense

    def _vectors(self) -> Vectors:
        """Vectors of all passages, those from the log first."""
        texts = {_hash_text(p.headed): p.headed for p in self.passages}
        made = np.zeros((0, 0), dtype=np.float32)
        kept: list[str] = []
        if self._log is not None:
            kept, made = self._log.load()
        known = dict(zip(kept, made, strict=True))
        missing = [key for key in texts if key not in known]
        for start in range(0, len(missing), _BATCH):
            if self._closed.is_set():
                raise CancelledError
            keys = missing[start : start + _BATCH]
            with defer_exit():
                fresh = self._embedder.embed([texts[key] for key in keys])
            known |= zip(keys, fresh, strict=True)
            if self._log is not None:
                self._log.append(keys, fresh)
        return np.stack([known[_hash_text(p.headed)] for p in self.passages])


class VectorStoreLoreIndex:
    """A vector store that the application filled itself.

    Only the order of what it returns is relied on: what its scores mean differs between stores.
    """

    def __init__(self, store: VectorStore) -> None:
        """Args:
        store: Any LangChain vector store that can be searched synchronously.
        """
        self._store = store

    def find(self, query: str, limit: int) -> LoreMatches:
        """See `Shelf.find`; raises what the store raises."""
        passages = _build_passages(
            self._store.similarity_search(query, k=_WIDER * limit), whole=True
        )
        words, cover = build_word_index(tuple((p.title, p.text) for p in passages)).scores(query)
        dense = -np.arange(len(passages), dtype=float)
        return LoreMatches(passages, NameFinder([p.title for p in passages]), dense, words, cover)

    def close(self) -> None:
        """Nothing to stop."""


def _build_passages(documents: Iterable[Document], *, whole: bool = False) -> list[Passage]:
    """The passages of documents, long ones cut unless they are to stay whole.

    Raises:
        ConfigurationError: Two have the same id.
    """
    found: dict[str, Passage] = {}
    for number, document in enumerate(documents, start=1):
        name = document.id or (_hash_text(document.page_content) if whole else str(number))
        for passage in _cut_document(document, f"lore_{_NOT_IN_ID.sub('-', name)}", whole):
            if passage.id in found and not whole:
                raise ConfigurationError(
                    f"two documents of the lore have the id {name!r}: give each its own, or none"
                )
            found.setdefault(passage.id, passage)
    return list(found.values())


def _cut_document(document: Document, name: str, whole: bool) -> Iterator[Passage]:
    title = str(document.metadata.get("title") or document.metadata.get("name") or "")
    tags = document.metadata.get("tags")
    told = tuple(map(str, tags)) if isinstance(tags, list | tuple) else ()
    texts = [document.page_content] if whole else passages_of(document.page_content, _PASSAGE)
    for part, text in enumerate(texts, start=1):
        yield Passage(name if len(texts) == 1 else f"{name}.{part}", title, text, told)


def _hash_text(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()[:16]


def _import_faiss() -> type[FAISS]:
    """LangChain's FAISS store. Loading it takes a while, and only those who have lore need it."""
    with warnings.catch_warnings():
        # The package says on import that it is no longer developed; which we know, and whoever
        # runs this cannot change.
        warnings.filterwarnings("ignore", _SUNSET, DeprecationWarning)
        from langchain_community.vectorstores import FAISS
    return FAISS
