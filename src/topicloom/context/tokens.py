"""Counting tokens: the choice of a counter, exact ones, and the evaluation's own measure.

tiktoken downloads a rank file that it does not find, and removes and downloads one whose hash
is wrong. So it is asked for an encoding only after the file was found intact in its cache, and
counting never opens a connection. Addresses and hashes are those of tiktoken 0.14
(`tiktoken_ext/openai_public.py`).
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from cachetools import LRUCache, cached

from topicloom.context.token_count import (
    EncodingName,
    EstimatingCounter,
    TokenCounter,
    ToolLike,
)
from topicloom.state.safe_text import hash_text

if TYPE_CHECKING:
    from tiktoken import Encoding


_BASE_URL = "https://openaipublic.blob.core.windows.net/encodings"


@dataclass(frozen=True, slots=True)
class RankFile:
    """The file of a published byte-pair vocabulary."""

    encoding: str
    """Name that tiktoken knows the encoding by."""
    url: str
    """Where tiktoken would fetch it; its cache names the file by the SHA-1 of this."""
    sha256: str

    def find_cached(self) -> Path | None:
        """Find the file in tiktoken's cache folder; None when it is not there.

        The folder is `TIKTOKEN_CACHE_DIR`, else `DATA_GYM_CACHE_DIR`, else `data-gym-cache`
        among the temporary files. A variable set to "" turns caching off.
        """
        fallback = str(Path(tempfile.gettempdir(), "data-gym-cache"))
        folder = os.environ.get(
            "TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", fallback)
        )
        path = Path(folder, hashlib.sha1(self.url.encode()).hexdigest())
        return path if folder and path.is_file() else None


RANK_FILES: Mapping[str, RankFile] = {
    "o200k": RankFile(
        "o200k_base",
        f"{_BASE_URL}/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k": RankFile(
        "cl100k_base",
        f"{_BASE_URL}/cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
"""The encodings of OpenAI's chat models; others publish no file that tiktoken caches."""


class TiktokenCounter(TokenCounter):
    """Counts tokens exactly; made by `open`."""

    def __init__(self, encoding: Encoding) -> None:
        """Count with a loaded tiktoken encoding."""
        self._encoding = encoding

    @classmethod
    def open(cls, ranks: RankFile) -> TiktokenCounter | None:
        """Load `ranks` from the cache folder; None without tiktoken or an intact file."""
        try:
            import tiktoken
        except ImportError:
            return None
        path = ranks.find_cached()
        if path is None or hashlib.sha256(path.read_bytes()).hexdigest() != ranks.sha256:
            return None
        return cls(tiktoken.get_encoding(ranks.encoding))

    def text(self, text: str) -> int:
        """Count the tokens of `text`; markers such as `<|endoftext|>` count as plain text."""
        return len(self._encoding.encode_ordinary(text))


_CL100K = re.compile(r"gpt-4(?![o.\d])|gpt-3|gpt-35")
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+")


def choose_counter(
    model_name: str, rank_files: Mapping[str, RankFile] = RANK_FILES
) -> TokenCounter:
    """The most exact counter that is on this machine, else the estimate; nothing is ever fetched.

    `model_name` may have a provider prefix; vocabularies may lie in tiktoken's cache, by encoding.
    """
    encoding = choose_encoding(model_name)
    ranks = rank_files.get(encoding)
    exact = TiktokenCounter.open(ranks) if ranks else None
    return exact or EstimatingCounter(encoding)


def choose_encoding(model_name: str) -> EncodingName:
    """Name the tokenizer of a model; o200k, the current OpenAI one, for any unknown."""
    name = model_name.lower()
    if "deepseek" in name:
        return "deepseek"
    if "claude" in name:
        return "claude"
    return "cl100k" if _CL100K.search(name) else "o200k"


def count_budget_tokens(text: str) -> int:
    """Measure `text` as the evaluation does: a CJK character or four other characters.

    CJK takes in kana, hangul, CJK punctuation and full-width forms. Rounded up.
    """
    cjk = sum(map(len, _CJK.findall(text)))
    return cjk + -(-(len(text) - cjk) // 4)


_MIN_CACHED_CHARACTERS = 200
"""Characters up to which counting is as cheap as remembering."""


class CachedTokenCounter(TokenCounter):
    """A token counter that remembers what another one said of longer texts.

    No text is kept, the longest unused are forgotten first.
    """

    def __init__(self, counter: TokenCounter, *, capacity: int = 50_000) -> None:
        self._counter = counter
        known: LRUCache[tuple[int, int], int] = LRUCache(capacity)
        self._count_long = cached(known, key=hash_text, lock=Lock())(counter.text)

    def text(self, text: str) -> int:
        """Count the tokens of a text."""
        count = self._counter.text if len(text) <= _MIN_CACHED_CHARACTERS else self._count_long
        return count(text)

    def tools(self, tools: Sequence[ToolLike]) -> int:
        """Count the JSON schemas of bound tools."""
        return self._counter.tools(tools)
