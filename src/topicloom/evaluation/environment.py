"""What a result was made with: versions, the state of this package, the machine."""

from __future__ import annotations

import os
import platform
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

_PACKAGES = (
    "topicloom",
    "langgraph",
    "langchain-core",
    "langchain",
    "langmem",
    "mem0ai",
    "qdrant-client",
    "faiss-cpu",
    "onnxruntime",
    "tokenizers",
    "numpy",
)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on, as far as they are here."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """The machine in one line."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def code_hash() -> str:
    """Twelve hex digits that change with any line of this package: versions are too coarse."""
    root = Path(str(files("topicloom")))
    digest = sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
