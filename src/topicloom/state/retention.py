"""How long what is stored of a session is kept."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field

from topicloom.state.stored_message import parse_iso_seconds

Days = Annotated[float, Field(gt=0)]
_DAY = 86_400.0


class Cutoffs(NamedTuple):
    """Times, in seconds since the epoch, before which something ends; None for never."""

    messages: float | None
    receipts: float | None
    facts: float | None


class RetentionPolicy(BaseModel, frozen=True, extra="forbid"):
    """How many days messages, receipts and facts are kept; what is older is purged.

    Pinned topics are no exception. A fact ends with the newest message that it rests on, unless a
    person has confirmed it since.
    """

    messages: Days | None = None
    """Days of messages, with all that was made of them; None for ever, here and below."""
    receipts: Days | None = None
    """Days of what receipts say, but for the number and the time of each turn."""
    facts: Days | None = None
    """Days of facts since they were last said or confirmed."""
    users: dict[str, Days] = {}
    """Days of the messages of single users, by `user_id`, in the place of `messages`."""

    def find_cutoffs(self, now: datetime, user: str) -> Cutoffs:
        """The times before which something of a user ends; "" for nobody's."""
        days = (self.users.get(user, self.messages), self.receipts, self.facts)
        return Cutoffs(*(d and now.timestamp() - d * _DAY for d in days))

    @property
    def ends_anything(self) -> bool:
        """True if anything ends at all."""
        return any((self.messages, self.receipts, self.facts, self.users))


def is_before(time: str, cutoff: float | None) -> bool:
    """True if an ISO 8601 time is before a cutoff; one that cannot be read is not."""
    seconds = parse_iso_seconds(time)
    return cutoff is not None and seconds is not None and seconds < cutoff
