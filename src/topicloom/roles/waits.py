"""The time that a turn waits for its roles: one deadline for all, and a rest for the late ones.

A slow server is slow for every role, and in every turn. So the roles of one turn together keep the
user waiting for one deadline, and a role that was late is not asked again in that turn and in some
turns after it. This is kept in the process, by session; nothing of it is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from topicloom.roles.base import Role, RoleName
from topicloom.storage.caches import OpenSessions

REST = 4
"""Turns in which a role that was late is not asked. Each time that it is late again without an
answer in between, the number doubles."""
LONGEST_REST = 32
"""The largest number of such turns."""
_NEARLY = 0.95
"""Share of a deadline after which a failure counts as being late: a client may notice it first."""
_SESSIONS = 1_024
"""Sessions of which a process remembers this."""

_Key = tuple[RoleName, str]
"""A role and the model that plays it."""


@dataclass(slots=True, weakref_slot=True)
class TurnWaits:
    """The time that one session has waited in its current turn, and the roles that rest."""

    seconds: float
    """Seconds that the roles of a turn may keep the user waiting, all together."""
    clock: Callable[[], float] = time.monotonic
    _turn: int = 0
    """Turns begun in this process."""
    _waited: bool = True
    """False for a turn that only records: nobody waits for it."""
    _spent: float = 0.0
    _since: float = 0.0
    """The time at which the current waiting began."""
    _waiting: int = 0
    """Calls that are waited for now."""
    _late: set[_Key] = field(default_factory=set)
    """Roles that were late in this turn."""
    _rests: dict[_Key, int] = field(default_factory=dict)
    """By role that was late: the last turn in which it rests."""
    _slow: dict[str, int] = field(default_factory=dict)
    """By model that was late in a role: the last turn in which it rests in other roles as well,
    unless it has answered in them."""
    _strikes: dict[_Key, int] = field(default_factory=dict)
    _answered: set[_Key] = field(default_factory=set)
    _lock: Any = field(default_factory=Lock)

    def begin(self, *, waited: bool = True) -> None:
        """Begin a turn; `waited` is False if it only records."""
        with self._lock:
            self._turn += 1
            self._waited, self._spent, self._waiting = waited, 0.0, 0
            self._late.clear()

    def refuse(self, name: RoleName, role: Role[Any, Any], *, waits: bool = True) -> str:
        """The reason not to ask a role now; "" to ask it, as always where it has no deadline.

        Args:
            waits: False for a call that the turn does not wait for.
        """
        if role.deadline is None:
            return ""
        key = (name, role.model)
        with self._lock:
            last, slow = self._rests.get(key, -1), self._slow.get(role.model, -1)
            if key in self._late:
                why = "it was late in this turn"
            elif last >= self._turn:
                why = f"it was late: it rests for {self._describe_rest(last)}"
            elif key not in self._answered and slow >= self._turn:
                rest = self._describe_rest(slow)
                why = f"{role.model} was late in another role: it rests for {rest}"
            elif waits and self._rest() <= (1 - _NEARLY) * self.seconds:
                why = f"the turn has waited {self.seconds:g} s for other roles"
            else:
                return ""
            return why

    def allow(self, role: Role[Any, Any]) -> float | None:
        """Seconds that the turn waits for a call of a role; None without a deadline."""
        if role.deadline is None:
            return None
        with self._lock:
            return min(role.deadline, max(self._rest(), 0.0)) if self._waited else role.deadline

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time inside; of calls that go on at once, each second counts once."""
        with self._lock:
            self._waiting += 1
            if self._waiting == 1:
                self._since = self.clock()
            turn = self._turn
        try:
            yield
        finally:
            with self._lock:
                if turn == self._turn:
                    self._waiting -= 1
                    if not self._waiting:
                        self._spent += self.clock() - self._since

    def note_answer(self, name: RoleName, role: Role[Any, Any]) -> None:
        if role.deadline is None:
            return
        with self._lock:
            self._answered.add((name, role.model))
            self._strikes.pop((name, role.model), None)

    def note_failure(
        self, name: RoleName, role: Role[Any, Any], took: float, allowed: float
    ) -> bool:
        """Note that a role failed after `took` of the seconds that it was allowed; True if late.

        Then it rests in later turns. It does not if others had left it hardly any time, nor if they
        had left it less than usual and its model has answered before.
        """
        if role.deadline is None or took < _NEARLY * allowed:
            return False
        key = (name, role.model)
        with self._lock:
            self._late.add(key)
            full = min(role.deadline, self.seconds)
            able = any(model == role.model for _, model in self._answered)
            unheard = allowed <= (1 - _NEARLY) * full or (able and allowed < _NEARLY * full)
            if not (unheard or self._rests.get(key, -1) > self._turn):
                strikes = self._strikes[key] = self._strikes.get(key, 0) + 1
                until = self._turn + min(REST * 2 ** (strikes - 1), LONGEST_REST)
                self._rests[key] = until
                self._slow[role.model] = max(self._slow.get(role.model, 0), until)
                self._answered.discard(key)
        return True

    def note_end(self, name: RoleName, role: Role[Any, Any], took: float, *, failed: bool) -> None:
        """A call has ended that the turn waits for no longer.

        If it failed after its whole deadline, its role rests. If it answered, that was in time by
        its own deadline, and neither its role nor its model rests any more.
        """
        if failed:
            self.note_failure(name, role, took, role.deadline or 0.0)
            return
        self.note_answer(name, role)
        with self._lock:
            self._rests.pop((name, role.model), None)
            self._slow.pop(role.model, None)

    def _describe_rest(self, last: int) -> str:
        left = last - self._turn
        return f"{left} more turn{'s' if left > 1 else ''}" if left else "this turn"

    def _rest(self) -> float:
        """Seconds of this turn's waiting that are left."""
        if not self._waited:
            return float("inf")
        going_on = self.clock() - self._since if self._waiting else 0.0
        return self.seconds - self._spent - going_on


class Waits(OpenSessions[TurnWaits]):
    """The waiting of each session of this process, by its id."""

    def __init__(self, seconds: float) -> None:
        """Turns wait `seconds` for all their roles together."""
        super().__init__(lambda _: TurnWaits(seconds), _SESSIONS)
