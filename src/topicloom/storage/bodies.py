"""A cache of bodies, bounded by bytes."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

DEFAULT_BYTES = 32 * 2**20
"""What one storage object keeps in memory unless told otherwise."""
_OVERHEAD = 300


class BodyCache:
    """Bodies used last, as JSON text. Safe for several threads.

    Text and not objects: its size is known to the byte, and every reader parses a copy of its
    own, so that nothing a caller does to a body can change what the next one reads.
    """

    def __init__(self, limit: int = DEFAULT_BYTES) -> None:
        self._limit = limit
        self._held = 0
        self._bodies: OrderedDict[tuple[str, str, str], bytes] = OrderedDict()
        self._mutex = Lock()

    def get(self, session: str, chain: str, ref: str) -> bytes | None:
        """The body, now the one used last; None when it is not kept."""
        key = (session, chain, ref)
        with self._mutex:
            body = self._bodies.get(key)
            if body is not None:
                self._bodies.move_to_end(key)
            return body

    def put(self, session: str, chain: str, ref: str, body: bytes) -> None:
        """Keep a body, and let go of the ones used longest ago where space runs out."""
        key = (session, chain, ref)
        with self._mutex:
            if key in self._bodies:
                return
            self._bodies[key] = body
            self._held += len(body) + _OVERHEAD
            while self._held > self._limit:
                _, dropped = self._bodies.popitem(last=False)
                self._held -= len(dropped) + _OVERHEAD

    def replace(self, session: str, chain: str, ref: str, body: bytes) -> None:
        """Let go of a body that is not valid any more.

        The new one takes its place, so that a reader who still holds the old one does not put it
        back.
        """
        with self._mutex:
            old = self._bodies.pop((session, chain, ref), None)
            if old is not None:
                self._held -= len(old) + _OVERHEAD
        self.put(session, chain, ref, body)
