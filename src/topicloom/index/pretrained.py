"""Opening models of sentence-transformers, from a folder or from the Hugging Face hub.

The library is an extra. It is imported here, when the first model is opened, and nowhere else.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pickle import UnpicklingError
from types import ModuleType
from typing import Any, Literal

from topicloom.errors import ConfigurationError, UnknownModelError

Kind = Literal["SentenceTransformer", "CrossEncoder"]
Extra = Literal["bge", "rerank"]

_MARKS: dict[Kind, str] = {"SentenceTransformer": "modules.json", "CrossEncoder": "config.json"}
"""A file without which what is cached of a model is not all that it takes. A sentence encoder
without its list of modules would be opened, but pooled in another way."""
_LOADED = frozenset({".json", ".txt", ".model", ".safetensors", ".bin", ".pt"})
"""Endings of files that make a model; others are descriptions or other forms of it."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model comes from."""

    model: str | Path
    """A folder or a name on the hub."""
    revision: str | None = None
    """Commit, branch or tag on the hub; None for its main branch."""
    local_only: bool = False
    """True if a hub name may only be taken from the cache on disk."""

    @property
    def folder(self) -> Path | None:
        """The folder that is meant; None for a name on the hub, which has at most one slash."""
        path = Path(self.model).expanduser()
        name = str(self.model)
        meant = isinstance(self.model, Path) or name.startswith((".", "~")) or name.count("/") > 1
        return path if meant or path.is_absolute() or path.is_dir() else None


@dataclass(frozen=True, slots=True)
class Opened:
    """A model of the library, ready for use."""

    model: Any
    fingerprint: str
    """Its name with its commit on the hub, or with a hash of its files."""


def open_pretrained(kind: Kind, source: ModelSource, *, extra: Extra, device: str | None) -> Opened:
    """Open a model, from the hub's cache without asking the hub if it is there.

    Args:
        kind: Class of the library.
        source: Where the model comes from.
        extra: What to install if the library is missing.
        device: Such as `cpu` or `cuda`; None for the best there is.

    Raises:
        ConfigurationError: The library cannot be imported.
        UnknownModelError: There is no such folder, it holds no model of this kind, or the model
            can be had neither from the cache nor from the hub.
    """
    make = getattr(_library(source, extra), kind)
    folder = source.folder
    if folder is not None:
        model = _from_folder(make, folder, device)
        return Opened(_checked(model, source), f"{folder.resolve().name}-{_digest(folder)}")
    model = _from_hub(make, kind, source, device)
    commit = _snapshot(source)
    name = f"{source.model}@{commit.name[:12] if commit else source.revision}"
    return Opened(_checked(model, source), name)


def readable(text: str, characters: int) -> str:
    """Cut to what can matter and replace lone surrogates, which have no UTF-8 form."""
    return text[:characters].encode("utf-8", "replace").decode("utf-8")


def _library(source: ModelSource, extra: Extra) -> ModuleType:
    try:
        return import_module("sentence_transformers")
    except ImportError as error:
        raise ConfigurationError(
            f"{str(source.model)!r} needs a package that is missing ({error}): "
            f'pip install "topicloom[{extra}]"'
        ) from error


def _from_folder(make: Any, folder: Path, device: str | None) -> Any:
    if not folder.is_dir():
        raise UnknownModelError(
            f"there is no folder {str(folder)!r} to load a model from: give one that holds its "
            'config.json, or a name on the hub such as "BAAI/bge-m3"'
        )
    try:
        return make(str(folder), device=device, local_files_only=True)
    except _failures() as error:
        raise UnknownModelError(
            f"the folder {str(folder)!r} holds no model that can be loaded: {_first_line(error)}"
        ) from error


def _from_hub(make: Any, kind: Kind, source: ModelSource, device: str | None) -> Any:
    cached = _snapshot(source)
    whole = cached is not None and (cached / _MARKS[kind]).is_file()
    # The network comes second: a start with a model that is on disk tells nobody about it.
    ways = [True] if source.local_only else [True, False] if whole else [False]
    for local in ways:
        try:
            return make(
                source.model, device=device, revision=source.revision, local_files_only=local
            )
        except _failures() as error:
            failure = error
    raise UnknownModelError(
        f"{source.model!r} is neither in the cache of the hub nor could it be loaded from there: "
        f"{_first_line(failure)} Connect once to download it, or give a folder that holds it"
    ) from failure


def _snapshot(source: ModelSource) -> Path | None:
    """The folder in the cache, named by its commit, that holds a hub model; None if none does."""
    try:
        hub = import_module("huggingface_hub")
        found = hub.snapshot_download(source.model, revision=source.revision, local_files_only=True)
    except (OSError, ValueError):
        return None
    return Path(found)


def _failures() -> tuple[type[Exception], ...]:
    """The errors that loading raises for files that are missing, damaged or of another kind."""
    damaged: type[Exception] = import_module("safetensors").SafetensorError
    return (OSError, ValueError, RuntimeError, KeyError, UnpicklingError, damaged)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _checked(model: Any, source: ModelSource) -> Any:
    """The model, if it tells letters apart: without its vocabulary it loads, and reads nothing.

    Raises:
        UnknownModelError: Naming the model.
    """
    one, other = (model.tokenizer(letter)["input_ids"] for letter in ("a", "b"))
    if one == other:
        raise UnknownModelError(f"{str(source.model)!r} has no usable tokenizer beside its weights")
    return model


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
