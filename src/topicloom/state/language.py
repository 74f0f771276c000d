"""The languages of prompts; a module of its own, so that a command's help loads nothing else."""

from __future__ import annotations

from typing import Literal

Language = Literal["en", "zh"]
LanguageChoice = Literal["auto", Language]
"""A language of the prompts; `auto` follows the conversation."""
