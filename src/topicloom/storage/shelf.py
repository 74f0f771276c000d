"""The sessions a process has open."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Shelf(Generic[T]):
    """One object a name: the same for as long as anybody holds it, kept while used lately.

    Safe for several threads.
    """

    def __init__(self, make: Callable[[str], T], size: int) -> None:
        """A shelf.

        Args:
            make: Makes the object of a name; may raise.
            size: How many objects stay open though nobody holds them.
        """
        self._make = make
        self._size = size
        self._alive: WeakValueDictionary[str, T] = WeakValueDictionary()
        self._recent: OrderedDict[str, T] = OrderedDict()
        self._mutex = Lock()

    def get(self, name: str) -> T:
        """The object of a name, made if nobody has it."""
        with self._mutex:
            item = self._alive.get(name)
            if item is None:
                item = self._alive[name] = self._make(name)
            self._recent[name] = item
            self._recent.move_to_end(name)
            if len(self._recent) > self._size:
                self._recent.popitem(last=False)
            return item
