"""Daily limits of what models may use, in tokens or in money: which roles rest, and when no reply
is asked for any more. Nothing is read or counted here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, Field

LimitScope = Literal["session", "user", "account", "process"]
"""What a limit is for: a session, all sessions of a user, of an account, or of this process."""
Amount = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]
REPLY = "responder"
"""The role that is asked until a limit is used up; all others rest before that."""


class DailyLimits(BaseModel, frozen=True, extra="forbid"):
    """What models may use in a day, from midnight to midnight by the user's clock.

    From a share of a limit on, all roles but the main model rest, and the index stands in for them.
    When the limit is used up, the reply is refused with `LimitReachedError`.
    """

    unit: Literal["tokens", "money"] = "tokens"
    """`tokens` of prompts and answers, also those from a cache, or `money` by `prices`."""
    session: Amount | None = None
    """Limit of each session; None for no limit, here and below."""
    user: Amount | None = None
    """Limit of each user (`TurnOptions.user_id`), over all sessions."""
    account: Amount | None = None
    """Limit of each account (`TurnOptions.account`), such as a key of `topicloom serve`."""
    accounts: dict[str, Amount] = {}
    """Limits of single accounts by name, in the place of `account`."""
    process: Amount | None = None
    """Limit of each process, over all sessions. It counts from zero when the process starts."""
    rest_at: Share = 0.8
    """Share of a limit from which on all roles but the main model rest."""
    roles: dict[str, Share] = {}
    """Share of each limit that a role may use, by role: `{"reader": 0.5}`. Then it rests."""

    def list_caps(self, names: Mapping[LimitScope, str]) -> dict[LimitScope, float]:
        """The limits that hold for something with these names; one without a name has none."""
        caps = {
            "session": self.session,
            "user": self.user,
            "account": self.accounts.get(names["account"], self.account),
            "process": self.process,
        }
        return {s: c for s in names if (c := caps[s]) and (names[s] or s == "process")}

    def is_used_up(self, role: str, cap: float, used: Mapping[str, float]) -> bool:
        """True if a role is not to be asked, by what each role has used of a limit."""
        share = 1.0 if role == REPLY else self.rest_at
        own = self.roles.get(role, 1.0) * cap
        return sum(used.values()) >= share * cap or used.get(role, 0.0) >= own


def add_up(counts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """What each role used, by several counts together."""
    total = dict[str, float]()
    for role, amount in (pair for count in counts for pair in count.items()):
        total[role] = total.get(role, 0.0) + amount
    return total
