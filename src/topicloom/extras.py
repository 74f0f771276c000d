"""Packages that topicloom works without, and the command that installs them.

Hints name the packages themselves: they can be installed wherever topicloom itself came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Extra = Literal["providers", "encoders", "postgres", "otel", "encryption"]

EXTRAS: Mapping[Extra, tuple[str, ...]] = {
    "providers": ("langchain>=1.4,<2",),
    "encoders": ("sentence-transformers>=6.2,<7",),
    "postgres": ("langgraph-checkpoint-postgres>=3.1,<4", "psycopg[binary]>=3.2,<4"),
    "otel": ("opentelemetry-api>=1.34,<2",),
    "encryption": ("cryptography>=46",),
}
"""The packages of each extra, as `pyproject.toml` has them."""


def name_install(extra: Extra) -> str:
    """The command that installs the packages of an extra; any shell takes it."""
    return "pip install " + " ".join(f'"{package}"' for package in EXTRAS[extra])
