"""Measures what encryption costs: a turn, a search in a session that is opened anew, an import.

    python benchmarks/encryption.py --messages 2000

The same is done with and without a key, by turns, and the ratio of each pair is printed: median,
and the smallest and the largest.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from topicloom import (
    EncryptedStorage,
    EncryptionKeys,
    FileStorage,
    Memory,
    Settings,
    Storage,
    TurnOptions,
    build_session_graph,
    local_checkpointer,
    make_encryption_key,
)
from topicloom_lab.talk import said

THREAD: RunnableConfig = {"configurable": {"thread_id": "s"}}
KEY = make_encryption_key()
Pair = tuple[float, float]


class Place:
    """A folder of a session, encrypted or not."""

    def __init__(self, folder: Path, key: str | None) -> None:
        self.settings = Settings(folder=folder, window=8_000, encryption_key=key)
        keys = EncryptionKeys.of(key) if key else None
        files = FileStorage(folder)
        self.storage: Storage = EncryptedStorage(files, keys) if keys else files
        self.saver = local_checkpointer(folder, keys=keys)
        self.graph = build_session_graph(settings=self.settings).compile(checkpointer=self.saver)

    def bring_in(self, messages: int) -> None:
        """Record a conversation in one turn, as an import does, and sort it into topics."""
        pairs = ((HumanMessage(said(n, 60)), AIMessage(said(n, 60))) for n in range(messages // 2))
        talk: list[BaseMessage] = [message for pair in pairs for message in pair]
        options = TurnOptions(answer=False, keep_messages=0)
        self.graph.invoke({"messages": talk}, THREAD, context=options)

    def tell(self, turn: int) -> None:
        """One turn of a session that is open."""
        self.graph.invoke({"messages": [HumanMessage(said(turn, 60))]}, THREAD)

    def search(self, turn: int) -> None:
        """One search by another process: the session is opened anew."""
        keys = EncryptionKeys.of(KEY) if isinstance(self.storage, EncryptedStorage) else None
        files = FileStorage(self.settings.folder)
        storage = EncryptedStorage(files, keys) if keys else files
        Memory(storage, "s").search(said(turn, 60))


@contextmanager
def places() -> Iterator[tuple[Place, Place]]:
    """One without a key, and one with."""
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as closed:
        both = Place(Path(plain), None), Place(Path(closed), KEY)
        yield both
        for place in both:
            place.saver.close()


def time_pair(first: bool, plain: Callable[[], None], closed: Callable[[], None]) -> Pair:
    """Seconds of CPU without and with a key; `first` if that without is."""
    times = dict[str, float]()
    calls = {"plain": plain, "closed": closed}
    for name in ("plain", "closed") if first else ("closed", "plain"):
        began = time.process_time()
        calls[name]()
        times[name] = time.process_time() - began
    return times["plain"], times["closed"]


def show(name: str, pairs: list[Pair]) -> None:
    """Print the median times, and the ratios of the pairs."""
    ratios = sorted(closed / plain for plain, closed in pairs)
    before, after = (1_000 * statistics.median(side) for side in zip(*pairs, strict=True))
    print(
        f"{name}: {before:.1f} ms of CPU without, {after:.1f} ms with a key;"
        f" ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f},"
        f" {len(pairs)} pairs)"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--pairs", type=int, default=30)
    given = parser.parse_args()
    imports = []
    for number in range(4):
        with places() as (plain, closed):
            imports.append(
                time_pair(
                    number % 2 == 0,
                    partial(plain.bring_in, given.messages),
                    partial(closed.bring_in, given.messages),
                )
            )
    show(f"import of {given.messages} messages", imports[1:])  # the first one loads the encoder
    with places() as (plain, closed):
        for place in (plain, closed):
            place.bring_in(given.messages)
        for name, do in (("turn", Place.tell), ("search of a session opened anew", Place.search)):
            pairs = []
            for n in range(given.messages, given.messages + given.pairs + 2):
                # Two texts: vectors of one are remembered.
                both = partial(do, plain, 2 * n), partial(do, closed, 2 * n + 1)
                pairs.append(time_pair(n % 2 == 0, *both))
            show(name, pairs[2:])
        sizes = [
            sum(file.stat().st_size for file in Path(str(p.settings.folder)).rglob("*.*"))
            for p in (plain, closed)
        ]
        print(f"bytes on disk: {sizes[1] / sizes[0]:.2f} times")


if __name__ == "__main__":
    main()
