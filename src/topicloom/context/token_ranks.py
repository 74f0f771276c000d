"""Exact counts with tiktoken, where its rank file already lies on this machine.

tiktoken downloads a rank file that it does not find, and removes and downloads one whose hash
is wrong. So it is asked for an encoding only after the file was found intact in its cache, and
counting never opens a connection. Addresses and hashes are those of tiktoken 0.14
(`tiktoken_ext/openai_public.py`).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from topicloom.context.token_count import CounterByText

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


class TiktokenCounter(CounterByText):
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
