"""Runs of characters of one kind."""

from __future__ import annotations

import re
from collections import Counter

from tables import each_row

from topicloom.context import token_count
from topicloom.context.token_count import count_runs

WORDS = r"[A-Za-zÀ-ɏ]"
KINDS = (
    WORDS,
    r"[0-9]",
    r"[!-/:-@\[-`{-~]",
    r"[\r\n]",
    r"[ \t]",
    token_count.CJK_START.pattern,
    r".",
)
"""Patterns of characters of one kind, in the order in which they are tried."""


def count_kinds(text: str) -> Counter[tuple[int, int]]:
    """How many runs a text has of each kind and length."""
    found = Counter[tuple[int, int]]()
    for first, length, times in count_runs(text):
        kind = next(i for i, kind in enumerate(KINDS) if re.match(kind, first, re.DOTALL))
        found[kind, length] += times
    return found


@each_row(
    ("text", "expected"),
    [
        ("I'm ", {(0, 3): 1}),
        ("we'll've ", {(0, 5): 1, (2, 1): 1, (0, 2): 1}),
        ("a'b'c'd ", {(0, 3): 2, (2, 1): 1}),
        ("a'bcd ", {(0, 1): 1, (2, 1): 1, (0, 3): 1}),
        ("a'é ", {(0, 1): 2, (2, 1): 1}),
        ("a''m ", {(0, 1): 2, (2, 2): 1}),
        ("中中。\ud800 ", {(5, 2): 1, (6, 2): 1}),
        ("12 \t 345\r\n\n", {(1, 2): 1, (4, 3): 1, (1, 3): 1, (3, 3): 1}),
    ],
)
def test_runs_of_a_text(text: str, expected: dict[tuple[int, int], int]) -> None:
    times = 1_000
    assert count_kinds(text) == expected
    assert count_kinds(text * times) == {run: n * times for run, n in expected.items()}
