"""A session's chains and vectors, over any backend: linking, walking, checking.

A checkpoint keeps one head a chain and nothing else; bodies live here. Storage only ever grows, so
every head that was ever returned stays readable, and forking from an old checkpoint sees what that
checkpoint saw. Purging is the one exception, and takes bodies only: refs and order stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from copy import deepcopy
from functools import partial
from typing import Any
from uuid import uuid4

from topicloom.errors import EncryptionError, MissingRecordError, StorageError
from topicloom.storage.backend import Backend, Batch, Rows
from topicloom.storage.caches import HeadCache
from topicloom.storage.chain import (
    PURGED,
    RawEntry,
    draft,
    dump_body,
    link,
    load_intact,
    tombstone,
)
from topicloom.storage.stored_chain import StoredChain
from topicloom.storage.topic_files import TopicFiles
from topicloom.storage.vectors import VectorLog

PURGES = "purges"
"""The chain that tells of purges: one row, which each of them replaces."""
_NEWEST = "0" * 15 + "1"
"""The ref of that row."""
SEALED_MARK = "0" * 15 + "2"
"""The ref of the row beside it that marks a session as encrypted."""
_DIGEST_BYTES = 6
"""Of a digest of the purges: as many as every JSON reader takes for a number."""


class SessionLog:
    """Everything durable of one session. Safe to use from several threads and processes.

    Every purge changes the digest of the session's purges. `renew` compares that in storage with
    the one that is known here. Where they differ, something was purged since, and nothing counts
    that was read before. Whoever keeps what was read compares `renewals`, and forgets it too.

    All that writes raises StorageUnavailableError where nothing can be written.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._heads = HeadCache()
        self._mutex = backend.mutex
        self._chains: dict[str, StoredChain] = {}
        self.purges = 0
        """Digest of the purges that are known here; 0 before the first one."""
        self.renewals = 0
        """Times that it forgot what it had read."""

    def renew(self) -> None:
        """Forget what was read before the newest purge, whichever process made it.

        Looks at the storage: at one row, or a file of a line. Whoever opens a session for reading
        calls it first.

        Raises:
            EncryptionError: The session is encrypted, and the storage has no key.
        """
        with self._mutex:  # or an older look might come behind a newer one
            found = list(self._backend.entries(PURGES).read([_NEWEST, SEALED_MARK]))
            if any(raw.ref == SEALED_MARK for raw in found):
                raise EncryptionError(
                    "session {session!r} is encrypted, and no key is set: set"
                    " TOPICLOOM_ENCRYPTION_KEY or TOPICLOOM_ENCRYPTION_KEY_FILE, or give the graph"
                    " storage=EncryptedStorage(...)",
                    session=self._backend.session,
                )
            digest = hashlib.sha256(found[0].body).digest()[:_DIGEST_BYTES] if found else b""
            if (purges := int.from_bytes(digest)) != self.purges:
                self.forget(purges)

    def announce_purge(self) -> None:
        """Change the digest of the purges, so that whoever has the session open will `renew` it.

        Two purges give two digests, also where both were made from the same state.
        """
        with self._mutex, self._backend.lock(create=False):
            body = dump_body({"purge": uuid4().hex})
            self._backend.entries(PURGES).replace([RawEntry(_NEWEST, None, body)])
            self.renew()

    def forget(self, purges: int = 0) -> None:
        """Forget what was read, as of a session that has those purges; 0 for none."""
        with self._mutex:
            self.purges, self._chains, self._heads = purges, {}, HeadCache()
            self.renewals += 1

    def append(
        self, chain: str, head: str | None, bodies: Sequence[Mapping[str, Any]]
    ) -> str | None:
        """Append bodies after a head.

        Entries that are already there are not written again, so a call may be repeated.

        Args:
            chain: Name of the chain, such as `transcript`.
            head: Ref to append after, or None to begin; any older ref forks.
            bodies: JSON-native data, without keys `prev`, `ref` and `purged`.

        Returns:
            The new head; `head` itself when there are no bodies.

        Raises:
            MissingRecordError: The head is not in the chain.
            InputError: A body is not JSON, or uses a reserved key.
        """
        entries: list[RawEntry] = []
        for body in bodies:
            entries.append(draft(entries[-1].ref if entries else head, body))
        if not entries:
            return head
        with self._mutex:
            self._chain(chain).append(head, entries)
        return entries[-1].ref

    def refs(self, chain: str, head: str | None) -> Sequence[str]:
        """The refs from the beginning up to a head, oldest first; empty for None.

        The result never changes, even while the chain grows. Costs time in proportion to what is
        new since the last call, not to the length of the chain.

        Raises:
            MissingRecordError: The head, or an entry before it, is not in the chain.
        """
        with self._mutex:
            return self._heads.refs(chain, head, self._chain(chain).prev)

    def read(self, chain: str, refs: Sequence[str]) -> list[dict[str, Any]]:
        """The bodies of refs, in their order. The caller owns what is returned.

        What is left of a purged body has the key `purged`.

        Raises:
            MissingRecordError: A ref is not in the chain.
            StorageError: An entry is not what was written, such as a line edited by hand.
        """
        found = self.readable(chain, refs)
        for ref in refs:
            if ref not in found:
                with self._mutex:
                    raise StorageError(self._chain(chain).mismatch(ref))
        if len(found) < len(refs):  # one is asked for twice
            return [deepcopy(found[ref]) for ref in refs]
        return [found[ref] for ref in refs]

    def readable(self, chain: str, refs: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Those of some bodies that can be read, by ref; else like `read`."""
        return _load(self._chain(chain).read(list(dict.fromkeys(refs))) if refs else ())

    def entries(self, chain: str) -> Mapping[str, str | None]:
        """The ref before each ref of a chain, of all branches, in no order; empty if unknown."""
        with self._mutex:
            return self._chain(chain).prevs()

    def rows(self, chain: str) -> dict[str, dict[str, Any]]:
        """The bodies of a chain that can be read, of all branches, by ref."""
        return _load(self._backend.entries(chain).scan())

    def hold(self) -> AbstractContextManager[None]:
        """Keep others from removing anything for as long as it lasts, as far as the place can."""
        return self._backend.lock(create=False)

    def standing(self, chain: str, refs: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Those of some bodies that can be read, by ref; nothing if one is gone."""
        with suppress(MissingRecordError):
            return self.readable(chain, refs)
        return {}

    def replace_rows(self, chain: str, body: Mapping[str, Any], remove: Collection[str]) -> str:
        """Write a row that is linked to no other, then remove some; returns its ref.

        Killed in between, some of them are still there.
        """
        row = draft(None, body)
        with self._mutex, self._backend.lock(create=True):
            self._backend.entries(chain).replace([row], set(remove) - {row.ref})
        return row.ref

    def purge(
        self, chain: str, refs: Sequence[str], keep: Mapping[str, Mapping[str, Any]] | None = None
    ) -> int:
        """Remove bodies on purpose and for good, and their vectors.

        Vectors of texts that were made of messages (`vectors.made_key`) all go with any of them.

        The entries stay with their refs, so every head stays valid. `read` gives what was kept
        of a body, by `keep`, with the key `purged`. Appending such an entry again does not bring
        its body back. Killed half-way, the same call finishes. What others have in memory stays
        there until they `renew`. Messages are purged by `SessionStore.purge`, which knows what has
        to stay of them and where else they stand.

        Returns:
            How many were purged and had not been before.

        Raises:
            MissingRecordError: A ref is not in the chain; nothing was changed.
            InputError: What is to stay is not JSON, or uses a reserved key.
        """
        with self._mutex:
            kept = keep or {}
            tombstones = {
                ref: tombstone(ref, self._chain(chain).prev(ref), kept.get(ref, {})) for ref in refs
            }
            if not tombstones:
                return 0
            # First of all: vectors are known by their bodies.
            # What was made of several, such as a brief, may be made of these.
            bodies = self.readable(chain, refs).values()
            keys = {link(None, body) for body in bodies if PURGED not in body}
            # One who holds the session meanwhile finds either both or neither of them.
            with self.hold():
                for vectors in map(self._vectors, self._backend.spaces()):
                    vectors.remove(keys)
                count = self._chain(chain).purge(tombstones)
                self.announce_purge()
            return count

    @property
    def topic_files(self) -> TopicFiles | None:
        """Copies of topics for people, where the storage has any."""
        return self._backend.topic_files

    def delete(self) -> None:
        """Remove the session for good; see `Storage.delete`."""
        with self._mutex, self._backend.lock(create=False):
            self._backend.remove()
            self.forget()

    def vectors(self, fingerprint: str) -> VectorLog:
        """The vectors of one embedding space, named by its embedder's fingerprint."""
        return self._vectors(self._backend.batches(fingerprint))

    def count_spaces(self) -> int:
        """How many embedding spaces it has vectors of."""
        return len(list(self._backend.spaces()))

    def reports(self) -> list[str]:
        """Damage found so far, a sentence each; chains are looked at when they are first used."""
        with self._mutex:
            return list(self._backend.reports)

    def _chain(self, name: str) -> StoredChain:
        chains = self._chains
        return chains.get(name) or chains.setdefault(name, StoredChain(self._backend, name))

    def _vectors(self, batches: Rows[Batch]) -> VectorLog:
        return VectorLog(batches, partial(self._backend.lock, create=True))


def _load(entries: Iterable[RawEntry]) -> dict[str, dict[str, Any]]:
    """Those bodies of some entries that are what was written, by ref."""
    return {raw.ref: body for raw in entries if (body := load_intact(raw)) is not None}
