"""Caches over what is stored: messages and what is folded, refs up to a head, open sessions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from cachetools import LRUCache

from topicloom.errors import StorageError
from topicloom.state.recall import Note
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topic_ranges import Range, TopicRanges
from topicloom.state.topics import TopicTable

K = TypeVar("K")
V = TypeVar("V")

_HEADS = 64


class WeighedCache(Generic[K, V]):
    """Values used last, bounded by what they weigh. Safe for several threads."""

    def __init__(self, limit: int, weigh: Callable[[V], int] | None = None) -> None:
        """An empty cache whose values may weigh `limit` together; each is 1 if nothing weighs it.

        A value's weight is constant.
        """
        self._items: LRUCache[K, V] = LRUCache(limit, weigh)
        self._mutex = Lock()

    def get(self, key: K) -> V | None:
        """The value, now the one used last; None when it is not cached."""
        with self._mutex:
            return self._items.get(key)

    def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Those values of some keys that are cached, now the ones used last."""
        found: dict[K, V] = {}
        with self._mutex:
            for key in keys:
                try:
                    found[key] = self._items[key]
                except KeyError:
                    continue
        return found

    def put(self, key: K, value: V) -> None:
        """Add a value, unless there is one, and evict those used longest ago."""
        with self._mutex:
            if key not in self._items and self._items.getsizeof(value) <= self._items.maxsize:
                self._items[key] = value

    def fetch(self, key: K, make: Callable[[], V]) -> V:
        """The value, made if it is not cached; two threads may make it at once."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value)
        return value


def count_shared(refs: Sequence[str], others: Sequence[str]) -> int:
    """Leading entries that two branches of a chain share: a ref stands for all before it."""
    shared = min(len(refs), len(others))
    if shared == 0 or refs[shared - 1] == others[shared - 1]:
        return shared
    return bisect_left(range(shared), True, key=lambda i: refs[i] != others[i])


class HeadCache:
    """The refs of the heads asked for last, over all chains of a session."""

    def __init__(self, size: int = _HEADS) -> None:
        self._known: LRUCache[tuple[str, str], Sequence[str]] = LRUCache(size)

    def refs(
        self, chain: str, head: str | None, prev: Callable[[str], str | None]
    ) -> Sequence[str]:
        """The refs up to a head, oldest first.

        Walks back, by the ref before each ref, until it meets a head asked for before.

        Raises:
            StorageError: The chain goes in a circle, which only a changed file can.
        """
        new: dict[str, None] = {}
        ref = head
        while ref is not None and (chain, ref) not in self._known:
            if ref in new:
                raise StorageError(
                    "chain {chain!r} goes in a circle at entry {ref}", chain=chain, ref=ref
                )
            new[ref] = None
            ref = prev(ref)
        refs = [] if ref is None else self._known[chain, ref]
        if new:
            refs = [*refs, *reversed(new)]
        if head is not None:
            self._known[chain, head] = refs
        return refs


class OpenSessions(Generic[V]):
    """One object a name: the same while it is referenced, cached while used lately.

    Safe for several threads.
    """

    def __init__(self, make: Callable[[str], V], size: int = 64) -> None:
        """None is open yet; `size` objects stay open though they are not referenced."""
        self._make = make
        self._alive: WeakValueDictionary[str, V] = WeakValueDictionary()
        self._recent: LRUCache[str, V] = LRUCache(size)
        self._mutex = Lock()

    def get(self, name: str) -> V:
        with self._mutex:
            item = self._alive.get(name)
            if item is None:
                item = self._alive[name] = self._make(name)
            self._recent[name] = item
            return item


_CACHED_BYTES = 16_000_000
"""Memory for messages of a session, and as much for lists of them."""
_OVERHEAD = 2_000
"""Bytes of a validated message in memory beside its text and its blocks, roughly."""


class TopicContent(NamedTuple):
    """Which messages a topic has, on which branch, and how they were edited."""

    ranges: tuple[Range, ...] = ()
    newest: str = ""
    """Ref of its newest message in the transcript; "" for none."""
    edited: tuple[tuple[int, str], ...] = ()
    """Numbers of its messages that are superseded, and the refs of the edits that count."""


_Edited = tuple[str | None, str | None]
"""Heads of the ranges and of the edits."""
_Run = TopicContent | tuple[str | None, str | None, int]
"""What a list of messages was read by: what a topic has; for the tail its transcript, what is
superseded, and first."""


class ReadCaches:
    """What was read of a session, kept until something is purged."""

    def __init__(self, renewals: int) -> None:
        self.renewals = renewals
        self.messages = WeighedCache[str, StoredMessage](_CACHED_BYTES, _weigh)
        self.tables = WeighedCache[str | None, TopicTable](8)
        self.ranges = WeighedCache[str | None, TopicRanges](8)
        self.edited = WeighedCache[_Edited, Mapping[str, tuple[tuple[int, str], ...]]](8)
        self.days = WeighedCache[str | None, Sequence[str]](2)
        self.runs = WeighedCache[_Run, Sequence[StoredMessage]](_CACHED_BYTES, _weigh_all)
        self.notes = WeighedCache[str | None, Sequence[Note]](4)
        self.superseded = WeighedCache[str, Mapping[int, StoredMessage | None]](8)
        self.purged = WeighedCache[str, Mapping[str, StoredMessage]](1)


def _weigh(message: StoredMessage) -> int:
    return len(message.text) + len(repr(message.whole)) + _OVERHEAD


def _weigh_all(messages: Sequence[StoredMessage]) -> int:
    return sum(map(_weigh, messages))
