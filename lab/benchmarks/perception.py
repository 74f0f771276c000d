"""Measures boundaries and the index of topics, without the embedding.

    python lab/benchmarks/perception.py [--centroids 100000]

Targets: at most 1 ms a round, 100,000 centroids searched in under 5 ms. Vectors come from the cache
of the embedder, so that their making does not count. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from topicloom import AdsorberPolicy, StoredMessage, default_embedder
from topicloom.lab import NearestRows, group_rounds, open_adsorber
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


def search_centroids(count: int) -> tuple[float, float, float]:
    """Time searches over `count` centroids, by cells and exactly, and the share that both find."""
    dimension = default_embedder().dimension
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(1_000, dimension))
    rows = centres[draw.integers(0, 1_000, count)] + draw.normal(size=(count, dimension))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    queries = rows[draw.integers(0, count, 50)]
    index, exact = NearestRows(dimension), NearestRows(dimension, exact=count)
    index.fill(rows)
    exact.fill(rows)
    shared = [
        len({p for p, _ in index.search(q, 10)} & {p for p, _ in exact.search(q, 10)}) / 10
        for q in queries
    ]
    return (
        milliseconds(partial(index.search, query, 512) for query in queries),
        milliseconds(partial(exact.search, query, 512) for query in queries),
        statistics.mean(shared),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--centroids", type=int, default=100_000)
    count = parser.parse_args().centroids
    messages = conversation()
    print(f"boundary of a block: {boundary(messages):.2f} ms (target 1)")
    cells, exact, shared = search_centroids(count)
    print(f"{count:,} centroids: {cells:.2f} ms (target 5), exactly {exact:.2f} ms;")
    print(f"of the ten nearest, {shared:.0%} are found")


if __name__ == "__main__":
    main()
