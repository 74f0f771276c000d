"""Measures boundaries, without the embedding.

    python lab/benchmarks/perception.py

Target: at most 1 ms a round. Vectors come from the cache of the embedder, so that their making does
not count. Run it on an idle machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from functools import partial

from topicloom import AdsorberPolicy, StoredMessage, default_embedder
from topicloom.lab import group_rounds, open_adsorber
from topicloom_lab.talk import said

BLOCKS = 400


def conversation() -> list[StoredMessage]:
    """Messages whose theme changes every ten rounds."""
    time_of = "2026-01-01T09:00:00"
    return [
        StoredMessage(
            seq=i + 1,
            role="user" if i % 2 == 0 else "assistant",
            text=said(i // 2, 100 if i % 2 == 0 else 300),
            time=time_of,
        )
        for i in range(2 * BLOCKS)
    ]


def milliseconds(calls: Iterable[Callable[[], object]]) -> float:
    """Median time of a call."""
    times = []
    for call in calls:
        began = time.perf_counter()
        call()
        times.append(1_000 * (time.perf_counter() - began))
    return statistics.median(times)


def boundary(messages: list[StoredMessage]) -> float:
    """A message through the funnel, its vectors known."""
    adsorber = open_adsorber(AdsorberPolicy(), default_embedder())
    cases = [(group_rounds(messages[i - 24 : i]), messages[i]) for i in range(24, len(messages), 2)]
    for rounds, message in cases:
        adsorber.judge(rounds, message)
    return milliseconds(partial(adsorber.judge, *case) for case in cases)


def main() -> None:
    """Measure and print."""
    messages = conversation()
    print(f"boundary of a block: {boundary(messages):.2f} ms (target 1)")


if __name__ == "__main__":
    main()
