"""Where the conversation begins that readers are shown."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

Opening = Callable[[Sequence[int], Sequence[int], int], int]
"""See `opening`: numbers, sizes and room to messages that are left out."""


def opening(numbers: Sequence[int], sizes: Sequence[int], room: int, since: int = 0) -> int:
    """How many leading messages of the conversation to leave out so that the rest fits.

    For as long as it fits, it begins where it began last; then half of the room is cleared, so
    that this lasts for many turns.

    Args:
        numbers: Of the messages, ascending.
        sizes: Tokens of each.
        room: Tokens that they may come to; the newest message stays in any case.
        since: Number of the message that it began with last; 0 if it never did.
    """
    cut = bisect_left(numbers, since)
    left = sum(sizes[cut:])
    if left < room // 4:  # the conversation went back, or has hardly begun
        cut, left = 0, sum(sizes)
    goal = room if left <= room else room // 2
    while left > goal and cut < len(numbers) - 1:
        left -= sizes[cut]
        cut += 1
    return cut


class Openings:
    """Where the conversation began that readers were shown last, by session.

    It is remembered in the process alone: where it is forgotten, a prompt loses its prefix once.
    """

    def __init__(self, size: int = 1_024) -> None:
        """Remember at most `size` sessions."""
        self._size = size
        self._since: OrderedDict[str, int] = OrderedDict()
        self._lock = Lock()

    def __call__(
        self, session: str, numbers: Sequence[int], sizes: Sequence[int], room: int
    ) -> int:
        """See `opening`."""
        with self._lock:
            cut = opening(numbers, sizes, room, self._since.pop(session, 0))
            if numbers:
                self._since[session] = numbers[cut]
            while len(self._since) > self._size:
                self._since.popitem(last=False)
        return cut
