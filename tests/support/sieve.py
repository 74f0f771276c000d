"""A sieve for functions that read what others wrote: texts of one unit again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

from examples import scaled

UNITS = (
    *(
        "\n",
        " ",
        "\u200b",
        "\n ",
        "\r\n",
        "<",
        "</",
        "< ",
        "<think>",
        "\n[",
        "\n[m1",
        "[m1",
        "# (t1",
    ),
    *("\r#", "\r# (t1", "\r===", "\r--", "\n--", "=", "-", "-- ", "1", "2026-", "中", "中。", "\\"),
    *(
        "\\u00",
        "'",
        '"',
        "a b ",
        "a",
        "Aa ",
        "a.",
        ". ",
        "? ",
        ", ",
        ": ",
        "(",
        "(a",
        "{",
        "{#",
        "… ",
    ),
    *("_", "/", "I'm ", "\u202e", "um, "),
    *("。", "a\n", "中 ", "😀", "👩\u200d👧", "e\u0301"),
)
"""What a text is made of again and again."""
FRAMES = (("", "a"), ("\n#<(“a", "?"))
"""What stands before them and behind them."""
FEW, MANY = 1_000, 8_000
"""Characters of a text, and of one that is eight times as long."""
SOON = 0.01
"""Seconds in which many characters are done, whatever the growth: nobody is kept waiting."""
GROWTH = 24
"""Times as long as for few characters: eight if linear, 64 if quadratic."""


def cpu_seconds(call: Callable[[], object], times: int = 1) -> float:
    """The least of some times of this thread: what else goes on only adds to them."""
    spent = list[float]()
    for _ in range(times):
        began = time.thread_time()
        call()
        spent.append(time.thread_time() - began)
    return min(spent)


def find_fast_growth(read: Callable[[str], object]) -> Iterator[tuple[str, float, float]]:
    """Units of which a function takes much longer for many than for few, with the seconds.

    A sample tries every fourth unit.
    """
    units = UNITS[:: len(UNITS) // scaled(len(UNITS))]
    for unit, (before, behind) in product(units, FRAMES):
        few, many = (before + unit * (n // len(unit)) + behind for n in (FEW, MANY))
        if cpu_seconds(partial(read, many)) > SOON:
            short = cpu_seconds(partial(read, few), 3)
            if cpu_seconds(partial(read, many)) > GROWTH * short:
                long = cpu_seconds(partial(read, many), 3)
                if long > GROWTH * short:
                    yield unit, round(short, 4), round(long, 4)
