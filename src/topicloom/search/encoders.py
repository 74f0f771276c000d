"""The encoders to choose from: the ones that ship, and those that applications bring.

The one that ships has one vector space for text in any script: vectors of sentences and of hashed
characters.
A vector is `[sqrt(1 - a) * sentence, sqrt(a) * hashing]`, so the cosine of two texts with the
shares `a` and `b` is `sqrt((1-a)(1-b)) * cos_sentence + sqrt(a*b) * cos_hashing`. The sentence part
is by an encoder of English, by one of Chinese that is mapped into the same space, or by both if
both scripts are in the text; so Chinese and English find each other by meaning. The shares depend
on the text alone. Japanese and Korean, which neither encoder reads, are hashed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from topicloom.search.bundled import BGE_CHINESE, MINILM, BundledEmbedder
from topicloom.search.embedder import CachedEmbedder, Embedder, Vectors, embed_telling, unit_rows
from topicloom.search.hashing import HashingEmbedder
from topicloom.search.pretrained import SentenceTransformerEmbedder
from topicloom.state.language import measure_cjk_share, measure_han_share
from topicloom.state.safe_text import describe_error, shorten_query

VERSION = 2
"""Raise it with any change to the shares."""

BASE_SHARE = 0.2
"""Of hashing in text that an encoder reads. Against 0 it lifts the recall of LoCoMo evidence in the
ten nearest messages from .25 to .27 and costs .003 of AUC in telling dialogue segments apart."""

NO_CJK, ALL_CJK = 0.1, 0.4
"""Shares of CJK letters where the ramp from English to CJK begins and ends. It ends under one half,
since one Chinese character says what several Latin letters do."""
NO_HAN, ALL_HAN = 0.8, 0.95
"""Shares of Han in CJK letters where the ramp from other languages to Chinese begins and ends:
Chinese has a stray Japanese character, and Japanese that is nearly all Han is a name or a title."""

_REMEMBERED = 24_000
"""Texts whose vectors are kept in memory: the newest of a thousand sessions, which every turn
compares (`boundary.features.WINDOW`). Of the encoder that ships, 86 MB at most."""
_CHARACTERS = 8_192
"""Characters embedded of one text by an application's own encoder, as many as MiniLM reads."""


class ScriptShares(NamedTuple):
    """The share of a text's vector that each encoder makes, 0 to 1."""

    english: float
    chinese: float
    """Of the sentence part, with `english`; together under 1 where neither encoder can read it."""
    hashing: float


def script_shares(text: str) -> ScriptShares:
    cjk = _ramp(measure_cjk_share(text), NO_CJK, ALL_CJK)
    chinese = cjk * _ramp(measure_han_share(text), NO_HAN, ALL_HAN) if cjk else 0.0
    return ScriptShares(1 - cjk, chinese, BASE_SHARE + (1 - BASE_SHARE) * (cjk - chinese))


def is_chinese(text: str) -> bool:
    """True for a text that is mostly Chinese; a very long one by its beginning and its end."""
    return script_shares(shorten_query(text)).chinese > 0.5


def _ramp(value: float, begin: float, end: float) -> float:
    return min(1.0, max(0.0, (value - begin) / (end - begin)))


class MixedEmbedder:
    """`Embedder` that joins others by the script of each text."""

    def __init__(self, english: Embedder, chinese: Embedder, hashing: Embedder) -> None:
        """The first two have one space, and so as many columns."""
        self._parts = english, chinese, hashing
        self.dimension = english.dimension + hashing.dimension
        names = ",".join(part.fingerprint for part in self._parts)
        self.fingerprint = f"mixed-{VERSION}({names})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        shares = np.array([script_shares(t) for t in texts], dtype=np.float32).reshape(-1, 3)
        english, chinese, hashing = shares.T
        encoded, translated, hashed = (
            _weighted(part, texts, weights)
            for part, weights in zip(self._parts, (english, chinese, np.sqrt(hashing)), strict=True)
        )
        encoded += translated
        mixed = (english < 1) & (chinese < 1)
        encoded[mixed] = unit_rows(encoded[mixed])
        return unit_rows(np.concatenate([encoded * np.sqrt(1 - hashing)[:, None], hashed], axis=1))


def _weighted(embedder: Embedder, texts: Sequence[str], weights: NDArray[np.float32]) -> Vectors:
    """Vectors times weights [n]; a text of weight 0 is never embedded."""
    vectors = np.zeros((len(texts), embedder.dimension), dtype=np.float32)
    rows = np.flatnonzero(weights)
    vectors[rows] = embedder.embed([texts[int(row)] for row in rows])
    return vectors * weights[:, None]


class ForeignEmbedder:
    """`Embedder` around an application's LangChain `Embeddings`, such as `OpenAIEmbeddings`.

    Documents and queries are embedded alike, by `embed_documents`. Nothing is embedded before a
    vector is asked for, or the dimension, for which one word is. Where its provider fails, rows are
    zero, and it is not asked again for a while: messages are found by their words then. Until its
    first vector these rows have one column.
    """

    def __init__(self, embeddings: Embeddings, rest: float = 30.0) -> None:
        """Embeddings are called from several threads; after a failure they rest some seconds."""
        self._embeddings = embeddings
        self._rest, self._rests_until = rest, 0.0
        self._dimension = 0
        self.failure = ""
        """The reason why there are no vectors now; "" if there are."""

    @property
    def fingerprint(self) -> str:
        """The class, with the model that it names: vectors of two models never mix."""
        return f"{_name_of(self._embeddings)}/{self.dimension}"

    @property
    def dimension(self) -> int:
        """1 as long as the provider has given no vector."""
        return self._dimension or self.embed([]).shape[1]

    def embed(self, texts: Sequence[str]) -> Vectors:
        encode = self._embeddings.embed_documents
        if time.monotonic() >= self._rests_until:
            try:
                self._dimension = self._dimension or len(encode(["a"])[0])
                vectors = embed_telling(texts, self._dimension, _CHARACTERS, encode)
            except Exception as error:  # noqa: BLE001 - the receipt has it, the turn goes on
                self.failure = describe_error(error, "\n".join(texts))
                self._rests_until = time.monotonic() + self._rest
            else:
                self.failure = ""
                return vectors
        return np.zeros((len(texts), self._dimension or 1), dtype=np.float32)


def _name_of(embeddings: Embeddings) -> str:
    named = (getattr(embeddings, name, None) for name in ("model", "model_name", "model_id"))
    model = next((n for n in named if isinstance(n, str) and n), "")
    return f"{type(embeddings).__name__}:{model}" if model else type(embeddings).__name__


@cache
def default_embedder() -> Embedder:
    """English and Chinese by meaning, all text by its characters, in one space; one a process."""
    parts = BundledEmbedder(MINILM), BundledEmbedder(BGE_CHINESE), HashingEmbedder()
    return CachedEmbedder(MixedEmbedder(*parts), _REMEMBERED)


def open_embedder(given: str | Embeddings | Embedder | None = None) -> Embedder:
    """The encoder that an application gives or a setting names; nothing is loaded yet.

    Args:
        given: None or `default` for the one that ships; `hashing` for shared characters and
            words, without a model; a folder with a model of sentence-transformers, or its name
            on the Hugging Face hub, such as `BAAI/bge-m3`; otherwise an encoder.
    """
    if isinstance(given, str):
        given = given.strip()
    if given is None or given in ("", "default"):
        return default_embedder()
    if isinstance(given, str):
        named = HashingEmbedder() if given == "hashing" else SentenceTransformerEmbedder(given)
        return CachedEmbedder(named, _REMEMBERED)
    if isinstance(given, Embeddings):
        return CachedEmbedder(ForeignEmbedder(given), _REMEMBERED)
    return given


class LangChainEmbeddings(Embeddings):
    """`Embeddings` by one of ours; the async forms run in a thread, as LangChain has it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._embedder.embed(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query, made as those of documents are."""
        return self.embed_documents([text])[0]
