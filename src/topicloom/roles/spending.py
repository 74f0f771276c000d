"""What models use of the day's limits: it is counted here, and roles are refused here.

A process counts its own calls in memory, and writes them into the graph's store; what others that
share the store have counted is read when a turn begins, and before its reply is asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from threading import Lock
from typing import NamedTuple
from uuid import uuid4

from cachetools import LRUCache
from langgraph.store.base import BaseStore

from topicloom.errors import ConfigurationError, LimitReachedError
from topicloom.state.limits import REPLY, DailyLimits, LimitScope, add_up
from topicloom.state.receipt import Call, Prices, find_price, price_call
from topicloom.state.session import Session
from topicloom.state.zones import place_in_zone
from topicloom.storage.spending import read_spent, write_spent

_log = logging.getLogger("topicloom.roles")
_SESSIONS = 4_096
"""Sessions of which a process remembers whose limits hold."""


class _Purse(NamedTuple):
    """What a limit of one day is counted in."""

    scope: LimitScope
    name: str
    day: date


@dataclass(frozen=True, slots=True)
class _Payers:
    """Whose limits hold for the calls of a session."""

    names: dict[LimitScope, str]
    timezone: str
    store: BaseStore | None


@dataclass(slots=True)
class Spending:
    """What the models of a process use, by its limits. May be used from many threads."""

    limits: DailyLimits
    prices: Prices
    clock: Callable[[], datetime]
    _process: str = field(default_factory=lambda: uuid4().hex)
    _payers: LRUCache[str, _Payers] = field(default_factory=lambda: LRUCache(_SESSIONS))
    _own: dict[_Purse, dict[str, float]] = field(default_factory=dict)
    """What each role used, as this process counted it."""
    _others: dict[_Purse, dict[str, float]] = field(default_factory=dict)
    """The same, as other processes had counted it when it was read."""
    _lock: Lock = field(default_factory=Lock)
    _writing: Lock = field(default_factory=Lock)

    def open(self, session: Session, store: BaseStore | None) -> None:
        """Find out whose limits hold for a session, and what others have used of them."""
        names: dict[LimitScope, str] = {
            "session": session.id,
            "user": session.user_id,
            "account": session.account,
            "process": "",
        }
        payers = _Payers(names, session.zone, store)
        with self._lock:
            self._payers[session.id] = payers
        for purse in self._find_purses(payers):
            if store is None or purse.scope == "process":
                continue
            try:
                read = read_spent(store, *purse, self.limits.unit, but=self._process)
            except Exception:  # noqa: BLE001 - the turn goes on by what was known
                _log.exception("what models used cannot be read from the graph's store")
                continue
            with self._lock:
                self._others[purse] = read

    def check_reply(self, session: Session, store: BaseStore | None) -> None:
        """Raise `LimitReachedError` before a model is asked for a reply, if a limit is used up.

        It goes by what all processes have counted until now.
        """
        self.open(session, store)
        self.check(session.id)

    def check_price(self, role: str, model: str) -> None:
        """Raise `ConfigurationError` if limits are of money, and a role's model has no price."""
        if self.limits.unit == "money" and find_price(role, model, self.prices) is None:
            raise ConfigurationError(
                "the daily limits are of money, but {model} has no price: add it to"
                " TOPICLOOM_PRICES, under its name or as {role!r}",
                model=model,
                role=role,
            )

    def check(self, session: str, role: str = REPLY) -> None:
        """Raise `LimitReachedError` if a role rests, or for a reply if a limit is used up."""
        payers = self._find_payers(session)
        for purse, cap in self._find_purses(payers).items():
            if self.limits.is_used_up(role, cap, self._count(purse)):
                now = place_in_zone(self.clock(), payers.timezone)
                midnight = datetime.combine(now.date() + timedelta(days=1), time.min, now.tzinfo)
                seconds = midnight.timestamp() - now.timestamp()
                raise LimitReachedError(
                    purse.scope, cap, self.limits.unit, seconds, rests=role != REPLY
                )

    def note(self, session: str, call: Call) -> None:
        """Count a call, for a session and for whoever else has a limit."""
        amount: float = call.input_tokens + call.output_tokens
        if self.limits.unit == "money":
            amount = price_call(call, self.prices) or 0.0
        payers = self._find_payers(session)
        for purse in self._find_purses(payers):
            with self._writing:  # an older count never overwrites a newer one
                with self._lock:
                    used = add_up([self._own.get(purse, {}), {call.role: amount}])
                    self._own[purse] = used
                if payers.store is None or purse.scope == "process":
                    continue
                try:
                    write_spent(payers.store, *purse, self.limits.unit, self._process, used)
                except Exception:  # noqa: BLE001 - the answer is there; the next call writes it too
                    _log.exception("what models used cannot be written to the graph's store")

    def list_used(self, session: str = "") -> dict[str, float]:
        """The share of each limit that is used today, by scope: of a session and of whoever else
        pays for it; without a session, of this process alone."""
        purses = self._find_purses(self._find_payers(session))
        return {p.scope: round(sum(self._count(p).values()) / c, 4) for p, c in purses.items()}

    def _find_payers(self, session: str) -> _Payers:
        with self._lock:
            return self._payers.get(session, _NOBODY)

    def _count(self, purse: _Purse) -> dict[str, float]:
        with self._lock:
            return add_up(kept.get(purse, {}) for kept in (self._own, self._others))

    def _find_purses(self, payers: _Payers) -> dict[_Purse, float]:
        """What limits of today are counted in, with each limit; what is of older days goes."""
        caps = self.limits.list_caps(payers.names)
        if not caps:
            return {}
        today = place_in_zone(self.clock(), payers.timezone).date()
        with self._lock:
            for kept in (self._own, self._others):
                for old in [p for p in kept if p.day < today - timedelta(days=1)]:
                    del kept[old]
        here = self.clock().date()
        days = {scope: here if scope == "process" else today for scope in caps}
        return {_Purse(s, payers.names[s], days[s]): cap for s, cap in caps.items()}


_NOBODY = _Payers({"process": "", "account": ""}, "", None)
