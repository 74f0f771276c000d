"""The encoders to choose from: the ones that ship, and those that applications bring.

The one that ships has one vector space for text in any script: sentences beside hashed characters.
A vector is `[sqrt(1 - a) * sentence, sqrt(a) * hashing]`, so the cosine of two texts with the
shares `a` and `b` is `sqrt((1-a)(1-b)) * cos_sentence + sqrt(a*b) * cos_hashing`. The sentence part
is by an encoder of English, by one of Chinese that is mapped into the same space, or by both if
both scripts are in the text; so Chinese and English find each other by meaning. The shares depend
on the text alone. Japanese and Korean, which neither encoder reads, are hashed. ONNX Runtime and a
model, int8 weights, are loaded when the first text of its language is embedded.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from topicloom.errors import ConfigurationError
from topicloom.index.embedder import (
    CachedEmbedder,
    Embedder,
    Vectors,
    embed_telling,
    readable,
    unit_rows,
)
from topicloom.index.hashing import HashingEmbedder
from topicloom.index.pretrained import SentenceTransformerEmbedder
from topicloom.state.language import measure_cjk_share, measure_han_share
from topicloom.state.safe_text import describe_error

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Encoding, Tokenizer

MODEL_FOLDER = Path(__file__).parent / "model"


@dataclass(frozen=True, slots=True)
class BundledModel:
    """A model in `MODEL_FOLDER`."""

    name: str
    """What it is, for fingerprints."""
    file: str
    tokenizer: str
    sha256: str
    """Of the file, as the script wrote it that builds the model."""


MINILM = BundledModel(
    "all-minilm-l6-v2-int8",
    "minilm-int8.onnx",
    "tokenizer.json",
    "2af9f1a6b0e54fc8e6d50d214c24d3623f67f4521d0e86a3239f7c9ece1da14d",
)
"""For English and, more weakly, other Latin-script text; by `scripts/build_embedder.py`."""
BGE_CHINESE = BundledModel(
    "bge-small-zh-v1.5-int8-mapped",
    "chinese-int8.onnx",
    "chinese-tokenizer.json",
    "566e22f310cfe30b3933d3f5b24f834c94485f562677eff95782743d98f6b743",
)
"""For Chinese, mapped into the space of the other; by `scripts/build_chinese.py`."""

MAX_TOKENS = 256
"""Tokens read of one text, MiniLM's own limit; its graph has no positions past it."""
MAX_CHARACTERS = 32 * MAX_TOKENS
"""Characters tokenized of one text, so that a pasted book costs no more than a page."""
BATCH_TOKENS = 512
"""Tokens of one run of the model, padding included. Sixteen long texts at once took 1.4 times the
time of two at once and 200 MB more memory: what they need no longer fits a core's cache. The
runtime keeps the memory of the largest run for the next one; given back to the allocator after
each, it was left in pieces that made the process a third larger within some hundred messages."""
BATCH_TEXTS = 16
"""Texts of one run at most."""
_THREADS = 2
"""Threads of one run."""
SPECIAL_TOKENS = 2
"""Tokens that frame every text, [CLS] and [SEP]."""


class BundledEmbedder:
    """`Embedder` with 384 columns by a model that ships."""

    dimension = 384

    def __init__(self, model: BundledModel) -> None:
        """Nothing is loaded yet."""
        self.fingerprint = f"{model.name}-{model.sha256[:8]}"
        self._model = model
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, InferenceSession] | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        if not any(texts):
            return vectors
        tokenizer, session = self._load()
        # One by one: a batch reads the environment, and the process ends if that changes meanwhile.
        encodings = [tokenizer.encode(readable(text, MAX_CHARACTERS)) for text in texts]
        for rows in _batches(encodings):
            ids, mask = _padded([encodings[row] for row in rows])
            feeds = {"input_ids": ids, "attention_mask": mask}
            vectors[rows] = session.run(None, feeds)[0]
        return vectors

    def _load(self) -> tuple[Tokenizer, InferenceSession]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _tokenizer(self._model), _session(self._model)
            return self._loaded


def _tokenizer(model: BundledModel) -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(MODEL_FOLDER / model.tokenizer))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.encode_special_tokens = True  # a text that says "[SEP]" means the characters
    return tokenizer


def _session(model: BundledModel) -> InferenceSession:
    from onnxruntime import InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = _THREADS
    options.inter_op_num_threads = 1
    # Idle threads sleep: spinning would burn a core between two short texts.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    path = MODEL_FOLDER / model.file
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != model.sha256:
            raise ConfigurationError(f"{path} is not what was shipped: install topicloom anew")
    return InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _batches(encodings: Sequence[Encoding]) -> Iterator[list[int]]:
    """Indices of the texts that have tokens, short texts with short ones, to limit padding."""
    lengths = [len(encoding) for encoding in encodings]
    rows = [row for row, length in enumerate(lengths) if length > SPECIAL_TOKENS]
    rows.sort(key=lengths.__getitem__)
    batch: list[int] = []
    for row in rows:
        if batch and (len(batch) == BATCH_TEXTS or (len(batch) + 1) * lengths[row] > BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _padded(encodings: Sequence[Encoding]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token ids and mask, both [n, longest] and 0 past the end of a text."""
    lengths = np.array([len(encoding) for encoding in encodings])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    ids = np.zeros_like(mask)
    for row, encoding in zip(ids, encodings, strict=True):
        row[: len(encoding)] = encoding.ids
    return ids, mask


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
    """How much of a text's vector, 0 to 1, is made in which way."""

    english: float
    chinese: float
    """Of the sentence part, with `english`; together under 1 where neither encoder can read it."""
    hashing: float


def script_shares(text: str) -> ScriptShares:
    """The shares of a text, by its letters."""
    cjk = _ramp(measure_cjk_share(text), NO_CJK, ALL_CJK)
    chinese = cjk * _ramp(measure_han_share(text), NO_HAN, ALL_HAN) if cjk else 0.0
    return ScriptShares(1 - cjk, chinese, BASE_SHARE + (1 - BASE_SHARE) * (cjk - chinese))


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
            except Exception as error:  # noqa: BLE001 - however it fails, a turn goes on without it
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
