"""From which likeness are two topics the same?

Conversations with known threads, each thread of eight messages or more cut in two: its halves
should be merged, halves of different threads should not. Likeness is measured as a review measures
it: cosine of mean vectors, less what all messages have in common. Threads that are called alike but
for a number ("Shopping - 0", "Shopping - 2") are about the same thing and count as neither.

    python lab/benchmarks/merging.py threads/goodai_dev.jsonl threads/irc_dev.jsonl

`SAME_TOPIC` of the embedded merger, which asks no model, is where none that differ are. A model is
asked about the likeliest pairs of a session, whatever their likeness.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations, islice
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from topicloom import default_embedder
from topicloom.lab import Vectors, unit_rows
from topicloom_lab.threads import ThreadedConversation, ThreadMessage, load_threads

LEAST = 8
"""Messages of a thread that is cut in two."""
LIKENESSES = (0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)


def pairs_of(conversation: ThreadedConversation) -> tuple[list[float], list[float]]:
    """Likeness of the halves of one thread, and of halves of different ones."""
    said = [m for m in conversation.messages if m.thread is not None and m.text.strip()]
    if not said:
        return [], []
    vectors = default_embedder().embed([_line(m) for m in said])
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, message in enumerate(said):
        rows[str(message.thread)].append(row)
    halves = [
        (thread, half)
        for thread, held in rows.items()
        if len(held) >= LEAST
        for half in (held[: len(held) // 2], held[len(held) // 2 :])
    ]
    likeness = _likeness(vectors, [half for _, half in halves])
    same: list[float] = []
    different: list[float] = []
    for (i, (one, _)), (j, (other, _)) in combinations(enumerate(halves), 2):
        if one == other:
            same.append(float(likeness[i, j]))
        elif _kind(one) != _kind(other):
            different.append(float(likeness[i, j]))
    return same, different


def _likeness(vectors: Vectors, halves: Sequence[Sequence[int]]) -> Vectors:
    if not halves:
        return np.zeros((0, 0), dtype=np.float32)
    centroids = unit_rows(
        np.stack([vectors[h].mean(axis=0) for h in halves]) - vectors.mean(axis=0)
    )
    products: Vectors = centroids @ centroids.T
    return products


def _line(message: ThreadMessage) -> str:
    return f"{message.speaker or 'user'}: {message.text}"


def _kind(thread: str) -> str:
    """The name of a thread without its number."""
    return thread.rpartition(" - ")[0] or thread


def row_of(least: float, same: Iterable[float], different: Iterable[float]) -> list[str]:
    """A row of the table."""
    found = [x >= least for x in same]
    wrong = [x >= least for x in different]
    return [
        f"{least:.2f}",
        f"{np.mean(found):.3f}",
        f"{sum(wrong)}",
        f"{100 * np.mean(wrong):.2f} %",
    ]


def main() -> None:
    """Print a table for each file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, help="conversations of a file at most")
    arguments = parser.parse_args()
    for file in arguments.files:
        same: list[float] = []
        different: list[float] = []
        for conversation in islice(load_threads(file), arguments.limit):
            one, other = pairs_of(conversation)
            same += one
            different += other
        title = f"{file.name}: {len(same)} pairs of one thread, {len(different)} of two"
        table = Table("likeness", "of one, found", "of two, found", "share", title=title)
        for least in LIKENESSES:
            table.add_row(*row_of(least, same, different))
        Console().print(table)


if __name__ == "__main__":
    main()
