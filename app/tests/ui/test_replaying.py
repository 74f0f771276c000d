"""Other thresholds, tried on receipts: what would have been read, and what of the quotes missed."""

from __future__ import annotations

from topicloom import ActivationPolicy, Call, Receipt, TopicNote
from topicloom_app.ui.replayed import ReplayedTurns, replay_activation

LOOSE = ActivationPolicy(floor=0)


def turn(number: int, **scores: float) -> Receipt:
    """A turn that read some topics for 100 tokens each, and quoted two messages of each."""
    return Receipt(
        turn=number,
        user=f"m{number}",
        started="",
        seconds=1,
        scores=scores,
        quoted=tuple(
            TopicNote(topic=t, name=t, score=s, quotes=("a", "b")) for t, s in scores.items()
        ),
        calls=tuple(Call(role="reader", topic=t, input_tokens=100) for t in scores),
    )


def test_the_same_thresholds_read_the_same() -> None:
    log = [turn(1, t1=0.9, t2=0.4), turn(2), turn(3, t1=0.8, t2=0.5)]
    assert replay_activation(log, LOOSE) == ReplayedTurns(2, 4, 400, 8, 0)


def test_stricter_ones_read_and_quote_less() -> None:
    log = [turn(1, t1=0.9, t2=0.4), turn(2, t1=0.8, t2=0.5)]
    strict = ActivationPolicy(base=0.6, floor=0)
    assert replay_activation(log, strict) == ReplayedTurns(2, 2, 200, 4, 4)


def test_a_topic_that_is_gone_is_read_no_more() -> None:
    log = [turn(1, t1=0.9, t2=0.9), turn(2, t1=0.9)]
    assert replay_activation(log, LOOSE).read == 3
