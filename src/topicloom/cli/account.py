"""What is worth telling of a session, drawn from its receipts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from topicloom.state.recall import TopicNote
from topicloom.state.receipt import Receipt

_SLEEP = 10
"""Turns from which a sleep is worth telling of."""


@dataclass(frozen=True, slots=True)
class Waking:
    """A topic that woke after a long sleep, for a turn that quoted it."""

    note: TopicNote
    """What was quoted."""
    asleep: int
    """Turns that it had slept."""
    user: str
    """Short id of the message that woke it."""


@dataclass(frozen=True, slots=True)
class Account:
    """A session in figures."""

    splits: int
    """How often messages moved into topics."""
    largest: int
    """Tokens of the largest main prompt."""
    wakings: tuple[Waking, ...]
    """Topics that woke after a sleep and were quoted, in order."""
    forgotten: tuple[Receipt, ...]
    """Turns that searched everything, in order."""


def account_of(receipts: Sequence[Receipt]) -> Account:
    """Draw up the account of a session's turns, in order."""
    return Account(
        splits=sum(bool(r.split) for r in receipts),
        largest=max((sum(r.sections.values()) for r in receipts), default=0),
        wakings=tuple(_wakings(receipts)),
        forgotten=tuple(r for r in receipts if r.searches),
    )


def _wakings(receipts: Sequence[Receipt]) -> Iterator[Waking]:
    awake_until: dict[str, int] = {}
    for receipt in receipts:
        quoted = {note.topic: note for note in receipt.quoted if note.quotes}
        for topic in receipt.woken:
            asleep = receipt.turn - awake_until.get(topic, receipt.turn)
            if topic in quoted and asleep >= _SLEEP:
                yield Waking(quoted[topic], asleep, receipt.user)
        awake_until |= dict.fromkeys((*receipt.active, *receipt.slept), receipt.turn)
