"""The receipt of a turn, and the originals that its prompt had."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import count, takewhile

from topicloom import Memory, Receipt, StoredMessage
from topicloom.hosting import parse_message_number
from topicloom_app.ui.grounds import Place

_IN_VIEW = 1_000
"""Newest messages in view that a reply may quote."""


def find_receipt(memory: Memory, wanted: str) -> Receipt | None:
    """The receipt of the turn that answered a message; None if it was only recorded."""
    session = memory.session()
    number = memory.quote(wanted).seq

    def read(skipped: int) -> Receipt | None:
        return next(iter(memory.receipts(1, skipped)), None)

    def order(skipped: int) -> int:
        receipt = read(skipped)
        return -parse_message_number(receipt.user) if receipt else 0

    for skipped in count(bisect_left(range(session.turn), -number, key=order)):
        receipt = read(skipped)
        if receipt is None or receipt.user != wanted:
            return None
        if receipt.scores | receipt.sections:
            return receipt
    return None


def list_shown(
    memory: Memory, receipt: Receipt, asked: StoredMessage
) -> dict[Place, list[StoredMessage]]:
    """The originals that the prompt of a turn had: what it quoted, what earlier turns had quoted
    since the last split, and the newest ones that no topic had yet."""

    def quote(receipts: Iterable[Receipt]) -> list[StoredMessage]:
        notes = (note for receipt in receipts for note in receipt.quoted)
        return [memory.quote(i) for i in dict.fromkeys(i for note in notes for i in note.quotes)]

    turns = range(memory.session().turn - receipt.turn + 1, memory.session().turn)
    before = (r for skipped in turns for r in memory.receipts(1, skipped))
    noted = takewhile(lambda r: parse_message_number(r.user) >= receipt.noted > 0, before)
    seen = min(asked.seq - max(1, receipt.view), _IN_VIEW)
    return {
        "quoted": quote([receipt]),
        "quoted_before": quote(noted),
        "in_view": memory.history(asked.id, seen)[::-1] if seen > 0 else [],
    }
