"""What was given before the command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Given:
    """Options of every command; None where nothing was given."""

    folder: Path | None = None
    """Where sessions live."""
    language: Literal["auto", "en", "zh"] | None = None
    """Language of the prompts."""
