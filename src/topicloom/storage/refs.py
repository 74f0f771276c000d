"""The refs of a chain up to a head, kept so that a longer chain costs only its new part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from cachetools import LRUCache

from topicloom.errors import StorageError

_HEADS = 1024


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


class HeadCache:
    """The refs of the heads asked for last, over all chains of a session."""

    def __init__(self, size: int = _HEADS) -> None:
        self._known: LRUCache[tuple[str, str], Refs] = LRUCache(size)

    def refs(self, chain: str, head: str | None, prev: Callable[[str], str | None]) -> Refs:
        """The refs up to a head, oldest first.

        Walks back from the head only until it meets a head asked for before.

        Args:
            chain: Name of the chain.
            head: Newest ref wanted, or None.
            prev: Gives the ref before a ref; may raise.

        Raises:
            StorageError: The chain goes in a circle, which only a changed file can.
        """
        new: dict[str, None] = {}
        ref = head
        while ref is not None and (chain, ref) not in self._known:
            if ref in new:
                raise StorageError(f"chain {chain!r} goes in a circle at entry {ref}")
            new[ref] = None
            ref = prev(ref)
        refs = Refs([], 0, 0) if ref is None else self._known[chain, ref]
        if new:
            refs = refs.extended(list(reversed(new)))
        if head is not None:
            self._known[chain, head] = refs
        return refs
