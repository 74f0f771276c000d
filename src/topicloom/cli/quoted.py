"""What a turn quoted, in a few words."""

from __future__ import annotations

from collections.abc import Sequence

from topicloom.cli.excerpts import shortened
from topicloom.state.recall import TopicNote, number_of


def counted(notes: Sequence[TopicNote], most: int | None = None) -> str:
    """How many messages were quoted from which topics, most of them first.

    Args:
        notes: What was quoted.
        most: Topics that are named.
    """
    quoting = sorted((n for n in notes if n.quotes), key=lambda n: -len(n.quotes))
    named = [f"{len(n.quotes)} from {shortened(n.name, 24)}" for n in quoting[:most]]
    rest = sum(len(n.quotes) for n in quoting[len(named) :])
    others = f"{rest} from other topics"
    return ", ".join([*named, others] if rest else named) or "nothing"


def runs(ids: Sequence[str]) -> str:
    """Short ids in order, neighbours drawn together: `m3, m7-m9`."""
    numbers = sorted(map(number_of, ids))
    begins = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    return ", ".join(f"m{a}" if a == b else f"m{a}-m{b}" for a, b in zip(begins, ends, strict=True))
