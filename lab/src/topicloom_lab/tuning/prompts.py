"""The share of the prompt that recall takes, and the effect of a smaller share of the window.

If the topics' results often take more than 40 % of the main window, fewer messages should be
quoted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topicloom.state.receipt import Receipt

LARGE = 0.4
"""Share of the prompt from which recall takes too much of it (the design's value)."""
_OFTEN = 0.25
"""Share of the prompts from which that is often."""
_PARTS = tuple(part / 20 for part in range(19, 4, -1))
"""Parts of what a turn's recall was at most, that are tried as its limit."""
_TURNS = 30
"""Prompts that anything is suggested from."""


@dataclass(frozen=True, slots=True)
class RecallLimit:
    """A smaller `recall_share`, and what it would have done."""

    share: float
    """Share of the main window that one turn's recall may add."""
    large: float
    """Share of the prompts of which recall would still have taken more than `LARGE`."""
    kept: float
    """Share of the recalled tokens that would have been left."""


def note_share(sections: dict[str, int]) -> float:
    """The part of a prompt that recall notes take, 0 to 1."""
    return sections.get("notes", 0) / max(1, sum(sections.values()))


def large_share(receipts: Sequence[Receipt]) -> float:
    """In how many of the prompts recall takes more than `LARGE`."""
    shares = [note_share(r.sections) for r in receipts if r.sections]
    return sum(share > LARGE for share in shares) / max(1, len(shares))


def recall_limit(receipts: Sequence[Receipt]) -> RecallLimit | None:
    """The largest limit that was tried under which recall seldom takes too much of the prompt.

    What a turn added to the notes is cut to the limit and summed up until the next split.

    Returns:
        The limit; None if recall does not often take too much, no limit would help, or there are
        too few prompts to tell.
    """
    prompts = [r for r in receipts if r.sections and r.window]
    if len(prompts) < _TURNS or large_share(prompts) <= _OFTEN:
        return None
    added = _added(prompts)
    most = max(tokens / r.window for tokens, r in zip(added, prompts, strict=True))
    limits = (_limited(prompts, added, round(part * most, 3)) for part in _PARTS)
    return next((limit for limit in limits if limit.large <= _OFTEN), None)


def _added(prompts: Sequence[Receipt]) -> list[int]:
    """The tokens that each turn's recall added: the rest of the notes was there before."""
    added, before = [], 0
    for receipt in prompts:
        notes = receipt.sections.get("notes", 0)
        added.append(notes - before if notes >= before and not receipt.split else notes)
        before = notes
    return added


def _limited(prompts: Sequence[Receipt], added: Sequence[int], share: float) -> RecallLimit:
    large, kept, notes, before = 0, 0, 0, 0
    for receipt, tokens in zip(prompts, added, strict=True):
        begun = receipt.split or receipt.sections.get("notes", 0) < before
        before = receipt.sections.get("notes", 0)
        some = min(tokens, round(share * receipt.window))
        notes = some if begun else notes + some
        kept += some
        rest = sum(receipt.sections.values()) - before
        large += notes > LARGE * (notes + rest)
    return RecallLimit(share, large / len(prompts), kept / max(1, sum(added)))
