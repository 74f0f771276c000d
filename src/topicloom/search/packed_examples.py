"""Examples of the kinds of messages that are told apart, and their vectors.

Embedding them takes seconds of the first turn of a process, so their vectors by the encoder that
ships are packed (`bin/generate`). Where texts or encoder are others, they are not
taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

import numpy as np
from cachetools import LRUCache

from topicloom.prompts.loader import LANGUAGES, load_rows
from topicloom.search.contrast import NEAREST, Contrast, contrast
from topicloom.search.embedder import Embedder, Vectors, unit_rows
from topicloom.search.encoders import default_embedder, is_chinese
from topicloom.state.language import Language

KINDS = "idle", "needing"
"""Messages that need no memory, and that need some (`search.need`)."""
PACKED = Path(__file__).parent / "model" / "examples.npz"
"""The vectors."""


def load_examples() -> dict[str, list[str]]:
    """The examples by kind, in both languages."""
    return {
        kind: [row for language in LANGUAGES for row in load_rows(f"cues/{kind}_{language}")]
        for kind in KINDS
    }


def read_packed(fingerprint: str, texts: Mapping[str, Sequence[str]]) -> dict[str, Vectors] | None:
    """The vectors [n, d] by kind; None if they are not those of this encoder and these texts."""
    if not PACKED.is_file():
        return None
    with np.load(PACKED) as file:
        if str(file["of"]) != digest_examples(fingerprint, texts):
            return None
        return {k: unit_rows(file[k].astype(np.float32) * file[f"{k}_steps"]) for k in KINDS}


def choose_examples(embedder: Embedder, text: str) -> Language | None:
    """The language of the examples that a message is compared with; None for both languages.

    The encoder that ships reads both. Another one may read one alone, and examples that it cannot
    read would blur the others.
    """
    if embedder.fingerprint == default_embedder().fingerprint:
        return None
    return "zh" if is_chinese(text) else "en"


def load_contrast(embedder: Embedder, language: Language | None = None) -> Contrast | None:
    """What needs memory and what needs none, as an encoder sees it; None while it has no vectors.

    The vectors of the encoder that ships are read; others are made once a process. Without a
    language, the examples of all languages count.
    """
    key = embedder.fingerprint, language
    with _LOADING:
        found = _LOADED.get(key)
        if found is None:
            texts = load_examples()
            packed = read_packed(embedder.fingerprint, texts)
            both = list[Vectors]()
            for kind in ("needing", "idle"):
                chosen = load_rows(f"cues/{kind}_{language}") if language else texts[kind]
                if packed:
                    rows = packed[kind][np.isin(texts[kind], chosen)]
                else:
                    rows = embedder.embed(chosen)
                both.append(rows[rows.any(axis=1)])
            if min(map(len, both)) <= NEAREST:
                return None  # its provider may be back later
            found = _LOADED[key] = contrast(*both)
        return found


_LOADED: LRUCache[tuple[str, Language | None], Contrast] = LRUCache(16)
_LOADING = Lock()


def digest_examples(fingerprint: str, texts: Mapping[str, Sequence[str]]) -> str:
    """A digest of the encoder and the texts that vectors are made of."""
    lines = [fingerprint, *(f"{kind}\t{text}" for kind in KINDS for text in texts[kind])]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
