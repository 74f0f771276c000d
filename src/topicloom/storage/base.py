"""What storage has to do: chains of entries, vectors, and sessions that hold both.

A checkpoint keeps one head a chain and nothing else; bodies live here. Storage only ever
grows, so every head that was ever handed out stays readable, and forking from an old
checkpoint sees what that checkpoint saw, whatever has been appended since. Archiving moves
bodies and changes nothing of that. Purging is the one exception, and takes bodies only: refs
and order stay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from topicloom.storage.packing import ArchiveCard

# The chains of a session; those of topics are named by `Topic.chain` and `Topic.references`.
TRANSCRIPT = "transcript"
"""Every message, in order."""
ROSTER = "roster"
"""Topics; a later row of a topic replaces the earlier ones."""
LEDGER = "ledger"
"""Recall notes."""
TIMELINE = "timeline"
"""Which topic had messages on which day."""
TURNS = "turns"
"""Receipts."""
EDITS = "edits"
"""Edits of the application's document."""


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

    def remove(self, keys: Collection[str]) -> None:
        """Remove the vectors of some keys, where there are any.

        Raises:
            StorageError: The stored data is not vectors.
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
            bodies: JSON-native data, without keys `prev`, `ref` and `purged`.

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

        What is left of a purged body has the key `purged`.

        Raises:
            MissingRecordError: A ref is not in the chain.
            StorageError: An entry is not what was written, such as a line edited by hand, or an
                archive that is damaged or gone.
        """
        ...

    def readable(self, chain: str, refs: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Those of some bodies that can be read, by ref; else like `read`.

        Raises:
            MissingRecordError: A ref is not in the chain.
        """
        ...

    def entries(self, chain: str) -> Mapping[str, str | None]:
        """The ref before each ref of a chain, of all its branches, in no order.

        Empty for an unknown chain.
        """
        ...

    def archive(self, chain: str, month: str, summary: Mapping[str, Any]) -> None:
        """Move a chain's bodies into the archive, compressed, beside a summary for people.

        Every head stays valid: `refs`, `read` and `append` work as before. May be called again,
        with another month or summary too: it takes in what was appended since. Safe beside other
        processes; killed anywhere, nothing is lost or twice, and the same call finishes.
        Entries that are damaged stay where they are.

        Args:
            chain: Name of the chain.
            month: What to file it under, `2026-03`.
            summary: JSON-native data, without a key `refs`.

        Raises:
            MissingRecordError: The chain is empty.
            InputError: That is no month, or the summary is not JSON.
            StorageError: An archive of the chain is damaged; nothing was changed.
            StorageUnavailableError: Nothing can be written there.
        """
        ...

    def restore(self, chain: str) -> None:
        """Move a chain back out of the archive, and its summary away; the reverse of `archive`.

        Nothing to do where nothing is archived.

        Raises:
            StorageError: An archive of the chain is damaged; nothing was changed.
            StorageUnavailableError: Nothing can be written there.
        """
        ...

    def archived(self, chain: str) -> ArchiveCard | None:
        """What an archived chain is filed under; None when nothing of it is archived."""
        ...

    def purge(
        self,
        chain: str,
        refs: Sequence[str],
        keep: Mapping[str, Mapping[str, Any]] | None = None,
        summary: Mapping[str, Any] | None = None,
    ) -> int:
        """Remove bodies on purpose and for good, archived or not, and their vectors.

        Vectors of texts that were made of messages (`storage/vectors.py`) all go with any of them.

        The entries stay with their refs, so every head stays valid. `read` gives what was kept
        of a body, with the key `purged`. Appending such an entry again does not bring its body
        back. Killed half-way, the same call finishes. What other processes have in memory stays
        there for as long as they run. Messages are purged by `SessionStore.purge`, which knows
        what has to stay of them and where else they stand.

        Args:
            chain: Name of the chain.
            refs: The entries.
            keep: What stays of their bodies, by ref; nothing by default.
            summary: Takes the place of what the archive's card says, if there is one: that may
                quote what is removed. Empty by default.

        Returns:
            How many were purged and had not been before.

        Raises:
            MissingRecordError: A ref is not in the chain; nothing was changed.
            InputError: What is to stay is not JSON, or uses a reserved key.
            StorageError: An archive of the chain is damaged, and nobody can say what is in it;
                nothing was changed.
            StorageUnavailableError: Nothing can be written there.
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
