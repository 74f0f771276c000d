"""Lists of cue phrases that ship with the package."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Literal

from topicloom.state.cues import Cues

CueList = Literal["amnesia_en", "amnesia_zh", "fillers"]


def cue_list(*names: CueList, more: Sequence[str] = ()) -> Cues:
    """The cues of some lists together.

    Args:
        names: Which lists.
        more: Further phrases, in the form of the lists' lines.
    """
    lines = [line for n in names for line in _read(n).splitlines()]
    return Cues.of([*lines, *more])


def _read(name: CueList) -> str:
    return (files("topicloom.prompts") / "cues" / f"{name}.txt").read_text("utf-8")
