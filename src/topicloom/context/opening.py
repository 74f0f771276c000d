"""Where the conversation begins that a reader is shown."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

Opening = Callable[[int, Sequence[int], Sequence[int], int], int]
"""A digest of what stands before the conversation, and the numbers, sizes and room of `opening`;
to how many messages are left out."""

_ENOUGH = 1_000
"""Tokens of older messages that are shown at least, if that leaves half of the room."""


def opening(
    numbers: Sequence[int], sizes: Sequence[int], room: int, since: int | None = None
) -> int:
    """How many leading messages of the conversation to leave out so that the rest fits.

    For as long as it fits, it begins where it began last. Where it begins anew, what comes before
    the newest message fills a quarter of the room, so that this lasts for many turns.

    Args:
        numbers: Of the messages, ascending; one at least.
        sizes: Tokens of each.
        room: Tokens that they may come to; the newest message stays in any case.
        since: Number of the message to begin with if that fits; None to begin anew.
    """
    if since in numbers:
        cut = numbers.index(since)
        if sum(sizes[cut:]) <= room:
            return cut
    older = min(max(room // 4, min(_ENOUGH, room // 2)), room - sizes[-1])
    cut, left = 0, sum(sizes[:-1])
    while left > older and cut < len(numbers) - 1:
        left -= sizes[cut]
        cut += 1
    return cut


@dataclass(frozen=True, slots=True)
class _Begun:
    """How a window's prompt was laid out last."""

    before: int
    """Digest of all that came before the conversation."""
    since: int
    """Number of the message that it began with."""
    newest: int
    """Number of its newest message."""


class Openings:
    """Where the conversation began that readers were shown last, by window.

    Where what stands before it has changed, a cache has lost the conversation anyhow: it begins
    anew, and costs as little as it can. Places are remembered in the process alone: where one is
    forgotten, a prompt loses its prefix once.
    """

    def __init__(self, size: int = 16_384) -> None:
        """Remember at most `size` windows."""
        self._size = size
        self._begun: OrderedDict[tuple[str, str], _Begun] = OrderedDict()
        self._lock = Lock()

    def __call__(
        self,
        window: tuple[str, str],
        before: int,
        numbers: Sequence[int],
        sizes: Sequence[int],
        room: int,
    ) -> int:
        """See `Opening`.

        Args:
            window: The session's and the topic's ids.
            before: Digest of all that comes before the conversation.
            numbers: Of the conversation's messages, ascending.
            sizes: Tokens of each.
            room: Tokens that they may come to.
        """
        if not numbers:
            return 0
        with self._lock:
            last = self._begun.pop(window, None)
            since = None
            if last and last.before == before and last.newest <= numbers[-1]:
                since = last.since
            cut = opening(numbers, sizes, room, since)
            self._begun[window] = _Begun(before, numbers[cut], numbers[-1])
            while len(self._begun) > self._size:
                self._begun.popitem(last=False)
        return cut
