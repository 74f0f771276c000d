"""What other thresholds of activation would have read, told by receipts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from topicloom import ActivationPolicy, Receipt
from topicloom.hosting import INITIAL_RELEVANCE, activate_candidates, update_activation


@dataclass(slots=True)
class ReplayedTurns:
    """Turns with readings, replayed."""

    turns: int = 0
    read: int = 0
    """Readings of topics."""
    tokens: int = 0
    """Prompt tokens of models for these."""
    quoted: int = 0
    """Originals quoted from topics that would have been read."""
    missed: int = 0
    """Originals that were quoted from others: the index alone would have had to find them."""


def replay_activation(receipts: Iterable[Receipt], policy: ActivationPolicy) -> ReplayedTurns:
    """Run the activation over receipts, in order.

    Only topics that were read have a score, so it says what stricter thresholds would have left
    out, and little of what looser ones would have added.
    """
    replayed, active = ReplayedTurns(), dict[str, tuple[float, ...]]()
    for receipt in (r for r in receipts if r.scores):
        active = {topic: scores for topic, scores in active.items() if topic in receipt.scores}
        for found in (dict.fromkeys(receipt.split, INITIAL_RELEVANCE), receipt.scores):
            known = {topic: found[topic] for topic in found if topic in receipt.scores}
            active = activate_candidates(active, known, policy).active
        _count(replayed, receipt, active)
        active = update_activation(active, receipt.scores, policy).active
    return replayed


def _count(replayed: ReplayedTurns, receipt: Receipt, active: Mapping[str, object]) -> None:
    replayed.turns += 1
    replayed.read += len(active)
    read = {None, *active}
    calls = (call for call in receipt.calls if call.role == "reader" and call.topic in read)
    replayed.tokens += sum(call.input_tokens for call in calls)
    for note in (n for n in receipt.quoted if n.topic in receipt.scores):
        if note.topic in active:
            replayed.quoted += len(note.quotes)
        else:
            replayed.missed += len(note.quotes)
