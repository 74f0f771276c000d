"""Leases in the store: at most one process at a time reflects upon a session.

    (topicloom, %reflecting, <session>)     owner -> since when, how long, and the process

Stores have no compare-and-set, so a lease is taken by raising a flag and looking for other flags:
of two who do so at once at least one sees the other, and gives way. It falls with its process where
others on the same machine look, and runs out for all.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import getnode, uuid4

from langgraph.store.base import BaseStore
from pydantic import BaseModel, Field

from topicloom.errors import SessionBusyError
from topicloom.reflection.due import ReflectionPolicy, is_within
from topicloom.storage.store_items import (
    PREFIX,
    Namespace,
    clean,
    delete_items,
    find_lock,
    items_in,
    label,
    put_items,
    read_item,
)

_LOOKS = 3
"""Number of looks of the one who goes first, until the others have given way."""


class Leases:
    """The leases of a store, for all sessions. Safe for several threads and processes."""

    def __init__(self, store: BaseStore, *, pause: float = 0.02) -> None:
        """Reflection's items in a store that is set up.

        The pause is that between two looks at who else wants a lease, in seconds.
        """
        self.store = store
        """The store that keeps them."""
        self._lock = find_lock(store)
        self._pause = pause

    def leases(self, session: str, now: float) -> dict[str, float]:
        """The leases of a session that count: since when, by owner."""
        with self._lock:
            items = list(items_in(self.store, _find_leases(session)))
        read = {item.key: read_item(_Lease, item) for item in items}
        return {
            owner: lease.since
            for owner, lease in read.items()
            if lease and is_within(lease.since, now, lease.seconds)
            if not lease.has_ended()
        }

    def acquire_lease(
        self, session: str, owner: str, since: float, policy: ReflectionPolicy
    ) -> bool:
        """Take the lease of a session; False if another has it, or wants it and goes first.

        No two who may ask at once may have the same name as owner.
        """
        self.renew_lease(session, owner, since, policy)
        for look in range(_LOOKS):
            others = self.leases(session, since).keys() - {owner}
            if not others:
                return True
            if min(others) < owner:
                break
            time.sleep(self._pause if look + 1 < _LOOKS else 0)
        self.release_lease(session, owner)
        return False

    def renew_lease(self, session: str, owner: str, since: float, policy: ReflectionPolicy) -> None:
        """Let a lease that is held begin anew."""
        lease = _Lease(
            since=since, seconds=policy.lease_seconds, host=_name_host(), pid=os.getpid()
        )
        self._put_own(_find_leases(session), owner, lease.model_dump())

    @contextmanager
    def hold_lease(
        self, session: str, since: float | None = None, policy: ReflectionPolicy | None = None
    ) -> Iterator[str]:
        """Keep reflection away from a session while the context lasts, as long as a lease does.

        It begins now, if no other time is given. The value of the context is the owner of the
        lease, by whom it can be renewed.

        Raises:
            SessionBusyError: It is being reflected upon.
        """
        owner, since = uuid4().hex, time.time() if since is None else since
        if not self.acquire_lease(session, owner, since, policy or ReflectionPolicy()):
            raise SessionBusyError(
                "session {session!r} is being reflected upon; try again when that is over",
                session=session,
            )
        try:
            yield owner
        finally:
            self.release_lease(session, owner)

    def release_lease(self, session: str, owner: str) -> None:
        """Give a lease back, if it is held."""
        with self._lock:
            delete_items(self.store, _find_leases(session), [owner])

    def _put_own(self, namespace: Namespace, key: str, value: Mapping[str, Any]) -> None:
        with self._lock:
            put_items(self.store, namespace, {key: clean(value)})


def _find_leases(session: str) -> Namespace:
    return (PREFIX, "%reflecting", label(session))


class _Lease(BaseModel, frozen=True):
    """Since when a session is reflected upon, for how many seconds at most, and by whom."""

    since: float
    seconds: float
    host: str
    pid: int = Field(gt=0, lt=2**31)

    def has_ended(self) -> bool:
        """True if it ran on this machine and has ended; False also if that cannot be told.

        Another process may have its id by now. Then the lease runs out.
        """
        if os.name != "posix" or self.host != _name_host():
            return False
        try:
            os.kill(self.pid, 0)
        except OSError as error:
            return isinstance(error, ProcessLookupError)
        return False


def _name_host() -> str:
    """A name for this machine or container: process ids mean nothing in another."""
    space = Path("/proc/self/ns/pid")
    return f"{platform.node()} {getnode():x} {os.readlink(space) if space.exists() else ''}"
