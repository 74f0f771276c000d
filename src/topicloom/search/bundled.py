"""The sentence encoders that ship, int8 weights on ONNX Runtime: one of English, one of Chinese.

Both give vectors of one space. `topicloom.search.encoders` chooses between them and adds what other
scripts need. ONNX Runtime and a model are loaded when the first text of its language is embedded.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topicloom.errors import ConfigurationError
from topicloom.search.embedder import Vectors, readable

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Encoding, Tokenizer

MODEL_FOLDER = Path(__file__).parent / "model"


@dataclass(frozen=True, slots=True)
class BundledModel:
    """A model in `MODEL_FOLDER`."""

    name: str
    """Its name, for fingerprints."""
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
            raise ConfigurationError(
                "{path} is not the file that topicloom ships: reinstall topicloom", path=path
            )
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
