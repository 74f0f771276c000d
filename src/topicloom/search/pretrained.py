"""Models of sentence-transformers, from a folder or from the hub, and a sentence encoder by one.

The library is an extra. It is imported here, when the first model is opened, and nowhere else.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Literal, Protocol, cast

from topicloom.errors import ConfigurationError, UnknownModelError
from topicloom.extras import name_install
from topicloom.search.embedder import Vectors, embed_telling

Kind = Literal["SentenceTransformer", "CrossEncoder"]

_MARKS: dict[Kind, str] = {"SentenceTransformer": "modules.json", "CrossEncoder": "config.json"}
"""The file without which a cached model is incomplete. A sentence encoder without its list of
modules would be opened, but pooled in another way."""
_LOADED = frozenset({".json", ".txt", ".model", ".safetensors", ".bin", ".pt"})
"""Endings of files that make a model; others are descriptions or other forms of it."""


def open_pretrained(kind: Kind, model: str | Path) -> tuple[Any, str]:
    """Open a model, from the hub's cache without asking the hub if it is there.

    Args:
        kind: Class of the library.
        model: A folder, or a name on the hub, which has at most one slash.

    Returns:
        The model, and its name with its commit on the hub or with a hash of its files.

    Raises:
        ConfigurationError: The library cannot be imported.
        UnknownModelError: There is no such folder, it holds no model of this kind, or the model
            can be had neither from the cache nor from the hub.
    """
    name = str(model)
    try:
        make = getattr(import_module("sentence_transformers"), kind)
    except ImportError as error:
        raise ConfigurationError(
            "{model!r} needs a package that is missing ({error}): {install}",
            model=name,
            error=error,
            install=name_install("encoders"),
        ) from error
    folder = Path(model).expanduser()
    meant = isinstance(model, Path) or name.startswith((".", "~")) or name.count("/") > 1
    if meant or folder.is_absolute() or folder.is_dir():
        opened = _from_folder(make, folder)
        fingerprint = f"{folder.resolve().name}-{_digest(folder)}"
    else:
        opened = _from_hub(make, kind, name)
        commit = _cached_snapshot(name)
        fingerprint = f"{name}@{commit.name[:12] if commit else None}"
    # Without its vocabulary a model loads, and takes every letter for the same one.
    one, other = (opened.tokenizer(letter)["input_ids"] for letter in ("a", "b"))
    if one == other:
        raise UnknownModelError("{name!r} has no usable tokenizer with its weights", name=name)
    return opened, fingerprint


def _from_folder(make: Any, folder: Path) -> Any:
    if not folder.is_dir():
        raise UnknownModelError(
            "there is no folder {folder!r} to load a model from: give one that holds its"
            ' config.json, or a name on the hub such as "BAAI/bge-m3"',
            folder=str(folder),
        )
    try:
        return make(str(folder), local_files_only=True)
    except _failures() as error:
        raise UnknownModelError(
            "the folder {folder!r} holds no model that can be loaded: {error}",
            folder=str(folder),
            error=_first_line(error),
        ) from error


def _from_hub(make: Any, kind: Kind, name: str) -> Any:
    cached = _cached_snapshot(name)
    whole = cached is not None and (cached / _MARKS[kind]).is_file()
    # The network comes second: a start with a model that is on disk tells nobody about it.
    for local in [True, False] if whole else [False]:
        try:
            return make(name, local_files_only=local)
        except _failures() as error:
            failure = error
    raise UnknownModelError(
        "{name!r} is neither in the cache of the hub nor could it be loaded from there: {reason}"
        " Connect once to download it, or give a folder that holds it",
        name=name,
        reason=_first_line(failure),
    ) from failure


def _cached_snapshot(name: str) -> Path | None:
    """The folder in the hub's cache, named by its commit, that holds a model, if there is one."""
    try:
        return Path(import_module("huggingface_hub").snapshot_download(name, local_files_only=True))
    except (OSError, ValueError):
        return None


def _failures() -> tuple[type[Exception], ...]:
    """The errors that loading raises for files that are missing, damaged or of another kind."""
    damaged: type[Exception] = import_module("safetensors").SafetensorError
    return (OSError, ValueError, RuntimeError, KeyError, UnpicklingError, damaged)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _digest(folder: Path) -> str:
    """Twelve hexadecimal digits over the names and contents of the files of a model."""
    digest = hashlib.sha256()
    files = (p for p in folder.rglob("*") if p.is_file() and p.suffix in _LOADED)
    for path in sorted(files):
        name = path.relative_to(folder).as_posix()
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{name} {content}\n".encode())
    return digest.hexdigest()[:12]


_MAX_TOKENS = 512
"""Tokens read of one text. BGE-M3 could read 8,192, at a cost that grows faster than the text."""
_BATCH_SIZE = 16
"""Most texts in one run of the model."""
_CHARACTERS = 16
"""Characters tokenized of a text for a token that may be read."""


class _Encoder(Protocol):
    """The part of a `sentence_transformers.SentenceTransformer` that is used here."""

    max_seq_length: int | None

    def encode(
        self, inputs: Sequence[str], *, batch_size: int, show_progress_bar: bool
    ) -> Vectors: ...


class SentenceTransformerEmbedder:
    """`Embedder` around a model of sentence-transformers. Needs that package.

    The model is loaded when its fingerprint, its dimension or a vector is asked for; each of them
    raises what `open_pretrained` does. It takes one batch at a time, so that threads may share it.
    """

    def __init__(self, model: str | Path) -> None:
        """Configure without loading anything: a folder, or a name on the Hugging Face hub."""
        self._model = model
        self._lock = threading.RLock()

    @property
    def fingerprint(self) -> str:
        """Name of the model, its commit or a hash of its files, and the tokens it reads."""
        return self._loaded[1]

    @cached_property
    def dimension(self) -> int:
        return int(self._encode(["a"]).shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        return embed_telling(texts, self.dimension, _CHARACTERS * _MAX_TOKENS, self._encode)

    def _encode(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            encoder, _ = self._loaded
            return encoder.encode(texts, batch_size=_BATCH_SIZE, show_progress_bar=False)

    @cached_property
    def _loaded(self) -> tuple[_Encoder, str]:
        with self._lock:
            if "_loaded" in self.__dict__:
                return self._loaded
            opened, fingerprint = open_pretrained("SentenceTransformer", self._model)
            encoder = cast("_Encoder", opened)
            read = min(encoder.max_seq_length or _MAX_TOKENS, _MAX_TOKENS)
            encoder.max_seq_length = read
            return encoder, f"{fingerprint}/{read}"
