"""Asking splitters: every block gets a place, whoever fails."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from topicloom.roles.calls import Ask, Outcome, ask
from topicloom.roles.registry import Roles
from topicloom.roles.splitter import SPLITTER, SplitRequest
from topicloom.state.blocks import LogicalBlock
from topicloom.state.receipt import Call
from topicloom.state.splitting import Portion, gather, joined

Sorted = Generator[Sequence[Ask], Sequence[Outcome], list[Portion]]


def sort_blocks(request: SplitRequest, roles: Roles, calls: list[Call]) -> Sorted:
    """Ask the splitter; ask once more for what it left out; then the stand-in decides.

    Should even that fail, blocks stay with the ones before them.

    Args:
        request: What is to be sorted.
        roles: The splitter and its stand-in.
        calls: What was called is added to it.
    """
    known = {t.id: t for t in request.topics}
    place = {b.first: i for i, b in enumerate(request.blocks)}
    portions: list[Portion] = []
    left = list(request.blocks)
    for splitter in (roles[SPLITTER], *roles.in_turn(SPLITTER)):
        if not left:
            break
        places = [place[b.first] for b in left]
        asked = replace(
            request,
            blocks=left,
            segments=[request.segments[i] for i in places],
            affinity={topic: near[places] for topic, near in request.affinity.items()},
            previous=_before(request, portions, left[0]).topic,
        )
        answer, call = yield from ask("splitter", splitter, asked)
        calls.append(call)
        found, left = gather(left, answer or (), known)
        portions += found
    if left:  # nobody sorts them, but nothing may be lost
        portions.append(replace(_before(request, portions, left[0]), blocks=tuple(left)))
    return joined(portions)


def _before(request: SplitRequest, portions: Sequence[Portion], block: LogicalBlock) -> Portion:
    """Where the block before a block goes, without its blocks; before the first, what it may."""
    for portion in portions:
        if any(b.last == block.first - 1 for b in portion.blocks):
            return replace(portion, blocks=(), also={})
    name = block.text.strip()[:40] or "…"
    return Portion(request.previous, name, "", ())
