"""Caches over what is stored: bodies, refs up to a head, open sessions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Generic, TypeVar, overload
from weakref import WeakValueDictionary

from cachetools import LRUCache

from topicloom.errors import StorageError

K = TypeVar("K")
V = TypeVar("V")

DEFAULT_BYTES = 32 * 2**20
"""Memory for bodies that one storage object takes by default."""
BODY_OVERHEAD = 300
"""Bytes that a cached body takes beside its text, roughly."""
_HEADS = 1024


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

    def clear(self, matches: Callable[[K], bool] = lambda _: True) -> None:
        with self._mutex:
            for key in list(filter(matches, self._items)):
                del self._items[key]


BodyCache = WeighedCache[tuple[str, int, str, str], bytes]
"""Bodies by session, the digest of its purges, chain and ref, as JSON text.

Text and not objects: its size is known, and every reader parses a copy of its own.
"""


class Refs(Sequence[str]):
    """An immutable stretch of a list that only grows.

    A chain's views share one list. The view of a longer chain is the same list and a larger
    end, so views handed out earlier neither change nor have to be copied. Length, indexing and
    slicing without a step cost the same at every length.
    """

    __slots__ = ("_items", "_start", "_stop")

    def __init__(self, items: list[str], start: int, stop: int) -> None:
        self._items = items
        self._start = start
        self._stop = stop

    def __len__(self) -> int:
        return self._stop - self._start

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...
    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        chosen = range(self._start, self._stop)[place]
        if isinstance(chosen, int):
            return self._items[chosen]
        if chosen.step == 1:
            return Refs(self._items, chosen.start, max(chosen.start, chosen.stop))
        return tuple(map(self._items.__getitem__, chosen))

    def __iter__(self) -> Iterator[str]:
        return map(self._items.__getitem__, range(self._start, self._stop))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Refs, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"Refs({list(self)!r})"

    def extended(self, more: Sequence[str]) -> Refs:
        """These refs and more after them.

        The shared list grows in place when this view ends where the list does. Where another
        branch has grown there already, the list is copied. Not safe for several threads at
        once: callers hold a lock.
        """
        items = self._items
        if self._start != 0 or self._stop != len(items):
            items = items[self._start : self._stop]
        items.extend(more)
        return Refs(items, 0, len(items))


def count_shared(refs: Sequence[str], others: Sequence[str]) -> int:
    """Leading entries that two branches of a chain share: a ref stands for all before it."""
    shared = min(len(refs), len(others))
    if shared == 0 or refs[shared - 1] == others[shared - 1]:
        return shared
    return bisect_left(range(shared), True, key=lambda i: refs[i] != others[i])


class HeadCache:
    """The refs of the heads asked for last, over all chains of a session."""

    def __init__(self, size: int = _HEADS) -> None:
        self._known: LRUCache[tuple[str, str], Refs] = LRUCache(size)

    def refs(self, chain: str, head: str | None, prev: Callable[[str], str | None]) -> Refs:
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
        refs = Refs([], 0, 0) if ref is None else self._known[chain, ref]
        if new:
            refs = refs.extended(list(reversed(new)))
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
