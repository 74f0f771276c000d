"""Lists of cue phrases that ship with the package."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Literal

from topicloom.state.cues import Cues

CueList = Literal[
    "amnesia_en",
    "amnesia_zh",
    "asked_en",
    "asked_zh",
    "fillers",
    "past_en",
    "past_zh",
    "future_en",
    "future_zh",
    "explain",
]
GroupList = Literal["fields", "statuses"]


def cue_list(*names: CueList, more: Sequence[str] = ()) -> Cues:
    """The cues of some lists together.

    Args:
        names: Which lists.
        more: Further phrases, in the form of the lists' lines.
    """
    lines = [line for n in names for line in _read(n).splitlines()]
    return Cues.of([*lines, *more])


def word_groups(name: GroupList) -> tuple[frozenset[str], ...]:
    """Words that mean the same, in lower case, a group each."""
    lines = (line for line in _read(name).splitlines() if line and not line.startswith("#"))
    return tuple(frozenset(word.strip().lower() for word in line.split(",")) for line in lines)


def _read(name: CueList | GroupList) -> str:
    return (files("topicloom.prompts") / "cues" / f"{name}.txt").read_text("utf-8")
