"""The prompts: one text file a prompt and language.

A prompt is finished as it stands in its file. It holds no name, date or other variable, so
that the prompts of all turns and topics begin with the same words (provider caches pay for
exact prefixes only); what varies follows in messages of its own.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

from topicloom.state.session import Language

PromptName = Literal[
    "reader",
    "splitter",
    "router",
    "brief",
    "rewriter",
    "responder",
    "arbiter",
    "reflector",
    "reviewer",
    "merger",
    "planner",
    "selector",
    "domain",
    "answer",
    "judge",
]


@cache
def prompt(name: PromptName, language: Language) -> str:
    """The text of a prompt, without the final newline."""
    path = files("topicloom.prompts") / language / f"{name}.md"
    return path.read_text(encoding="utf-8").strip()
