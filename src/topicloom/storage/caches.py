"""What a process keeps in memory of what is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from cachetools import LRUCache

K = TypeVar("K")
V = TypeVar("V")

DEFAULT_BYTES = 32 * 2**20
"""Memory for bodies that one storage object takes unless told otherwise."""
_OVERHEAD = 300


class WeighedCache(Generic[K, V]):
    """Values used last, bounded by what they weigh. Safe for several threads."""

    def __init__(self, limit: int, weigh: Callable[[V], int]) -> None:
        """An empty cache.

        Args:
            limit: What all values may weigh together.
            weigh: What a value weighs; the same whenever it is asked.
        """
        self._items: LRUCache[K, V] = LRUCache(limit, weigh)
        self._weigh = weigh
        self._mutex = Lock()

    def get(self, key: K) -> V | None:
        """The value, now the one used last; None when it is not kept."""
        with self._mutex:
            return self._items.get(key)

    def put(self, key: K, value: V) -> None:
        """Keep a value, unless one is kept, and let go of those used longest ago."""
        with self._mutex:
            if key not in self._items and self._weigh(value) <= self._items.maxsize:
                self._items[key] = value

    def replace(self, key: K, value: V) -> None:
        """Let go of a value that is not valid any more.

        The new one takes its place, so that a reader who still holds the old one does not put it
        back.
        """
        self.drop([key])
        self.put(key, value)

    def drop(self, keys: Iterable[K]) -> None:
        """Let go of values."""
        with self._mutex:
            for key in keys:
                self._items.pop(key, None)

    def clear(self) -> None:
        """Let go of all values."""
        with self._mutex:
            self._items.clear()


BodyCache = WeighedCache[tuple[str, str, str], bytes]
"""Bodies by session, chain and ref, as JSON text.

Text and not objects: its size is known to the byte, and every reader parses a copy of its own, so
that nothing a caller does to a body can change what the next one reads.
"""


def body_cache(limit: int) -> BodyCache:
    """A cache of bodies that takes so many bytes of memory."""
    return WeighedCache(limit, lambda body: len(body) + _OVERHEAD)


class OpenSessions(Generic[V]):
    """One object a name: the same for as long as anybody holds it, kept while used lately.

    Safe for several threads.
    """

    def __init__(self, make: Callable[[str], V], size: int = 64) -> None:
        """None is open yet.

        Args:
            make: Makes the object of a name; may raise.
            size: How many objects stay open though nobody holds them.
        """
        self._make = make
        self._alive: WeakValueDictionary[str, V] = WeakValueDictionary()
        self._recent: LRUCache[str, V] = LRUCache(size)
        self._mutex = Lock()

    def get(self, name: str) -> V:
        """The object of a name, made if nobody has it."""
        with self._mutex:
            item = self._alive.get(name)
            if item is None:
                item = self._alive[name] = self._make(name)
            self._recent[name] = item
            return item
