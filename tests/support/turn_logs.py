"""Turn logs made without a graph: the activation run over scores that the test knows in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from topicloom import ActivationPolicy, Call, Receipt, TopicNote
from topicloom.state.activation import activate_candidates, average_scores, update_activation
from topicloom.state.session import Search

FRESH = 0.6
"""Standing of topics that messages have just moved to."""


@dataclass(frozen=True)
class Day:
    """What a turn is about."""

    relevance: Mapping[str, float]
    """How the index and the readers rate each topic."""
    split: tuple[str, ...] = ()
    """Topics that messages move to first."""
    asked_for: tuple[str, ...] = ()
    """Topics that the user asks for if they sleep."""


def log_of(
    days: Sequence[Day], policy: ActivationPolicy | None = None, *, model: str = "embedded"
) -> list[Receipt]:
    """The log of a session with these turns. Topics from 0.5 on are quoted.

    Args:
        days: The turns.
        policy: The settings of the activation.
        model: What reads topics.
    """
    policy = policy or ActivationPolicy()
    active: dict[str, tuple[float, ...]] = {}
    there: set[str] = set()
    receipts: list[Receipt] = []
    for turn, day in enumerate(days, 1):
        there |= set(day.split)
        before = activate_candidates(active, dict.fromkeys(day.split, FRESH), policy)
        known = {t: s for t, s in day.relevance.items() if t in there}
        recalled = activate_candidates(before.active, known, policy)
        sought = tuple(t for t in day.asked_for if t in there and t not in recalled.active)
        awake = {**recalled.active, **{t: (known[t],) for t in sought}}
        scores = {t: known.get(t, 0.0) for t in awake}
        settled = update_activation(awake, scores, policy)
        active = settled.active
        woken = (*before.activated, *recalled.activated, *sought)
        receipts.append(
            Receipt(
                turn=turn,
                user=f"m{2 * turn - 1}",
                started="2026-03-02T09:00:00+01:00",
                seconds=0.1,
                scores=scores,
                quoted=tuple(_note(t, s) for t, s in scores.items() if s >= 0.5),
                active=tuple(sorted(active, key=lambda t: -average_scores(active[t]))),
                activated=tuple(t for t in woken if t in active),
                deactivated=(*before.deactivated, *recalled.deactivated, *settled.deactivated),
                sections={"system": 400, "notes": 100 * len(scores), "tail": 1_500},
                window=8_000,
                split=day.split,
                searches=(Search(query="?", found=sought),) if sought else (),
                calls=_calls(scores, model, searching=bool(sought)),
            )
        )
    return receipts


def write_log(path: Path, receipts: Sequence[Receipt]) -> Path:
    """Write receipts as JSON lines."""
    path.write_text("".join(f"{r.model_dump_json()}\n" for r in receipts), "utf-8")
    return path


def _note(topic: str, score: float) -> TopicNote:
    return TopicNote(topic=topic, name=f"About {topic}", score=score, quotes=("m1", "m2"))


def _calls(scores: Mapping[str, float], model: str, *, searching: bool) -> tuple[Call, ...]:
    readers = [Call(role="reader", model=model, topic=topic) for topic in scores]
    return (*([Call(role="router")] if searching else []), *readers, Call(role="responder"))
