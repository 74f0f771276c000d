"""Cutting long messages into passages that are searched one by one."""

from __future__ import annotations

import re

PASSAGE = 400
"""Characters of a passage."""
_CUT = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")


def passages_of(text: str, size: int = PASSAGE) -> list[str]:
    """Cut a text at its sentences and lines.

    Args:
        text: Any text.
        size: Characters of a passage, about; a text up to half as long again stays whole.

    Returns:
        At least one passage.
    """
    if len(text) <= size * 3 // 2:
        return [text]
    found: list[str] = []
    current = ""
    for piece in _pieces(text, size):
        if current and len(current) + len(piece) > size:
            found.append(current)
            current = piece
        else:
            current = f"{current}\n{piece}" if current else piece
    return [*found, current] if current else found or [""]


def _pieces(text: str, size: int) -> list[str]:
    """Sentences and lines; those over twice the size in equal parts."""
    pieces: list[str] = []
    for part in filter(None, map(str.strip, _CUT.split(text))):
        step = size if len(part) > 2 * size else len(part)
        pieces += [part[i : i + step] for i in range(0, len(part), step)]
    return pieces
