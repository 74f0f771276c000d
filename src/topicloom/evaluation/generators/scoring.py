"""Scoring answers to aggregation questions as OOLONG does (Bertsch et al., 2025)."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"-?\d[\d,]*")
_PARTIAL = 0.75
"""What each unit of error leaves of a number's score."""


def score(expected: str, said: str) -> float:
    """How right an answer is, 0 to 1.

    For a number `0.75 ** abs(expected - said)`, of the last number that is said; for anything
    else 1 if it is what stands behind the last colon, or all that is said, and else 0. Case,
    punctuation around it and emphasis don't count.

    Args:
        expected: The true answer.
        said: What was answered.
    """
    if expected.strip().isdigit():
        numbers = [int(n.replace(",", "")) for n in _NUMBER.findall(said)]
        return _PARTIAL ** abs(int(expected) - numbers[-1]) if numbers else 0.0
    return float(_bare(expected) in (_bare(said), _bare(said.rpartition(":")[2])))


def _bare(text: str) -> str:
    return " ".join(re.sub(r"[*_`\"'\[\].!]", " ", text).casefold().split())
