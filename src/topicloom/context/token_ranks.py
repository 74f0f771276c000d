"""Exact counts with tiktoken, where its rank file already lies on this machine.

tiktoken downloads a rank file that it does not find, and removes and downloads one whose hash
is wrong. Here the file is read directly, so that counting never opens a connection. Addresses,
hashes and patterns are those of tiktoken 0.14 (`tiktoken_ext/openai_public.py`).
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage

from topicloom.context.token_count import ToolLike, count_message_tokens, count_tools_tokens

if TYPE_CHECKING:
    from tiktoken import Encoding

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BLOBS = "https://openaipublic.blob.core.windows.net/encodings"


@dataclass(frozen=True, slots=True)
class RankFile:
    """A published byte-pair vocabulary."""

    url: str
    """Where tiktoken would fetch it; its cache names the file by the SHA-1 of this."""

    sha256: str
    """Hexadecimal digest of the file."""

    pattern: str
    """How text is cut before pairs are merged, in the syntax of Rust's fancy-regex."""

    def cached(self) -> Path | None:
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
        url=f"{_BLOBS}/o200k_base.tiktoken",
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        pattern=(
            rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTION}"
            rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTION}"
            r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
    ),
    "cl100k": RankFile(
        url=f"{_BLOBS}/cl100k_base.tiktoken",
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        pattern=(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
            r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        ),
    ),
}
"""The encodings of OpenAI's chat models; others publish no file that tiktoken caches."""


class TiktokenCounter:
    """Counts tokens exactly; made by `open`."""

    def __init__(self, encoding: Encoding) -> None:
        """Count with a loaded tiktoken encoding."""
        self._encoding = encoding

    @classmethod
    def open(cls, ranks: RankFile) -> TiktokenCounter | None:
        """Load `ranks` from the cache folder.

        Returns:
            None when tiktoken is not installed, or the file is not there or is damaged.
        """
        path = ranks.cached()
        encoding = _load(path, ranks) if path else None
        return cls(encoding) if encoding else None

    def text(self, text: str) -> int:
        """Count the tokens of `text`; markers such as `<|endoftext|>` count as plain text."""
        return len(self._encoding.encode_ordinary(text))

    def message(self, message: BaseMessage) -> int:
        """Count one message with its frame, blocks and tool calls."""
        return count_message_tokens(message, self.text)

    def tools(self, tools: Sequence[ToolLike]) -> int:
        """Count the JSON schemas of bound tools."""
        return count_tools_tokens(tools, self.text)


@lru_cache(maxsize=4)
def _load(path: Path, ranks: RankFile) -> Encoding | None:
    """Build an encoding from a rank file: lines of a token in base64 and its rank."""
    try:
        from tiktoken import Encoding
    except ImportError:
        return None
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != ranks.sha256:
        return None
    pairs = (line.split() for line in data.splitlines() if line)
    return Encoding(
        ranks.url.rsplit("/", 1)[-1],
        pat_str=ranks.pattern,
        mergeable_ranks={base64.b64decode(token): int(rank) for token, rank in pairs},
        special_tokens={},
    )
