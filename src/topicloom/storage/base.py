"""What storage has to do: chains of entries, vectors, and sessions that hold both.

A checkpoint keeps one head a chain and nothing else; bodies live here. Storage only ever
grows, so every head that was ever handed out stays readable, and forking from an old
checkpoint sees what that checkpoint saw, whatever has been appended since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class VectorLog(Protocol):
    """Vectors of one embedding space, by 16-hex-digit key. Safe to use from several threads."""

    def load(self) -> tuple[list[str], NDArray[np.float32]]:
        """Everything stored.

        Returns:
            Keys [n] without duplicates, and vectors [n, d] rounded to float16; of a key that was
            appended twice, the newer. [0, 0] when nothing is stored.

        Raises:
            StorageError: The stored data is not vectors.
        """
        ...

    def append(self, keys: Sequence[str], vectors: NDArray[np.floating[Any]]) -> None:
        """Add vectors.

        Args:
            keys: Keys [n], 16 lower-case hex digits each.
            vectors: Array [n, d]; d is the same in every call.

        Raises:
            InputError: Keys or shape are wrong.
            StorageUnavailableError: Nothing can be written there.
        """
        ...


class SessionLog(Protocol):
    """Everything durable of one session. Safe to use from several threads and processes."""

    def append(
        self, chain: str, head: str | None, bodies: Sequence[Mapping[str, Any]]
    ) -> str | None:
        """Append bodies after a head.

        Entries that are already there are not written again, so a call may be repeated.

        Args:
            chain: Name of the chain, such as `transcript` or `topics/topic-t1`.
            head: Ref to append after, or None to begin; any older ref forks.
            bodies: JSON-native data, without keys `prev` and `ref`.

        Returns:
            The new head; `head` itself when there are no bodies.

        Raises:
            MissingRecordError: The head is not in the chain.
            InputError: A body is not JSON, or uses a reserved key.
            StorageUnavailableError: Nothing can be written there.
        """
        ...

    def refs(self, chain: str, head: str | None) -> Sequence[str]:
        """The refs from the beginning up to a head, oldest first; empty for None.

        What is returned never changes, even while the chain grows. Costs time in
        proportion to what is new since the last call, not to the length of the chain.

        Raises:
            MissingRecordError: The head, or an entry before it, is not in the chain.
        """
        ...

    def read(self, chain: str, refs: Sequence[str]) -> list[dict[str, Any]]:
        """The bodies of refs, in their order. The caller owns what is returned.

        Raises:
            MissingRecordError: A ref is not in the chain.
            StorageError: An entry is not what was written, such as a line edited by hand.
        """
        ...

    def vectors(self, fingerprint: str) -> VectorLog:
        """The vectors of one embedding space, named by its embedder's fingerprint."""
        ...

    def reports(self) -> list[str]:
        """What was found damaged so far, and what became of it: a sentence each.

        Chains are looked at when they are first used, so ask again after using them.
        """
        ...


class Storage(Protocol):
    """Where sessions live. Safe to use from several threads."""

    def open(self, session: str) -> SessionLog:
        """The log of a session, which need not exist yet; nothing is created by opening.

        Args:
            session: Thread id: any text but the empty one.

        Returns:
            The same object for the same session for as long as somebody holds it.

        Raises:
            InvalidNameError: The name is empty.
            StorageUnavailableError: Nothing can be read there.
        """
        ...

    def sessions(self) -> list[str]:
        """Names of all sessions that hold anything, sorted.

        Raises:
            StorageUnavailableError: Nothing can be read there.
        """
        ...

    def lock(self, session: str) -> AbstractContextManager[None]:
        """Hold a session for as long as the context lasts. Appends do not need it.

        Raises:
            SessionBusyError: On entry, when another holds it.
        """
        ...
