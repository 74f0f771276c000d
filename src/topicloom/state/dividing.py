"""Dividing a topic that outgrew its window: which parts help, and a cut that always does."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from topicloom.state.rounds import Round
from topicloom.state.splitting import Portion, cut_to_size
from topicloom.state.topic_names import number_names

_MAX_PART_SHARE = 0.8
"""Share of the whole past which the largest part is no better than the whole: every division takes
a fifth off at least, so a few of them make any topic fit."""
_TARGET_FILL = 0.75
"""Share of a window that parts which are cut fill at most: they have to last for a while."""
_MAX_PARTS = 8
"""Parts to a window at most, as many as the splitter's prompt asks for."""
_MIN_ROUNDS = 4
"""Rounds that a part has on average at least: smaller ones are no matter to come back to."""


CountRound = Callable[[Round], int]
"""Tokens of a round."""


def divide_rounds(
    name: str,
    rounds: Sequence[Round],
    proposed: Sequence[Portion],
    size: CountRound,
    limit: int,
    taken: Collection[str] = (),
    *,
    by_model: bool = False,
) -> list[Portion]:
    """The parts of a topic that is too large, two or more: by subject if that helps, else by time.

    The two or more rounds are in conversation order, each in one part of the proposed division. No
    part is given a `taken` name by number. Small parts stay only if a model proposed them.
    """
    whole = sum(map(size, rounds))
    most = max(2, min(_MAX_PARTS * whole // max(1, limit), len(rounds) // _MIN_ROUNDS))
    parts = list(proposed) if by_model else absorb_small_parts(proposed, size, most)
    largest = max((sum(map(size, part.rounds)) for part in parts), default=whole)
    if len(parts) > 1 and largest <= _MAX_PART_SHARE * whole:
        return parts
    runs = cut_rounds(rounds, size, limit)
    numbered = zip(number_names(name, taken), runs, strict=False)
    return [Portion(None, part, "", run) for part, run in numbered]


def absorb_small_parts(parts: Sequence[Portion], size: CountRound, most: int) -> list[Portion]:
    """The largest parts, `most` of them; rounds of the others go where those before them are."""
    if len(parts) <= most:
        return list(parts)
    order = sorted(range(len(parts)), key=lambda i: (-sum(map(size, parts[i].rounds)), i))
    kept = sorted(order[:most])
    owners = sorted((b.first, i) for i in kept for b in parts[i].rounds)
    given: dict[int, list[Round]] = {i: list(parts[i].rounds) for i in kept}
    for round_ in (b for i in order[most:] for b in parts[i].rounds):
        given[find_preceding(owners, round_.first)].append(round_)
    return [replace(parts[i], rounds=tuple(sorted(given[i], key=lambda b: b.first))) for i in kept]


def find_preceding(owners: Sequence[tuple[int, int]], number: int) -> int:
    """The place of the last message before a message; of the first of all, if none is before it.

    The owners are numbers of messages with their places, sorted; not empty.
    """
    place = bisect_right(owners, number, key=lambda owner: owner[0])
    return owners[max(0, place - 1)][1]


def cut_rounds(rounds: Sequence[Round], size: CountRound, limit: int) -> list[tuple[Round, ...]]:
    """Cut rounds, two or more, into runs that fit and are balanced in tokens: two or more as well.

    Only a round alone may be larger than `limit`.
    """
    ends = list(itertools.accumulate(map(size, rounds)))
    whole = ends[-1]
    count = min(len(rounds), max(2, math.ceil(whole / (_TARGET_FILL * limit))))
    wanted = (whole * n / count for n in range(1, count))
    inner = range(1, len(rounds))
    cuts = sorted({min(inner, key=lambda i: (abs(ends[i - 1] - w), i)) for w in wanted})
    runs = [rounds[a:b] for a, b in itertools.pairwise([0, *cuts, len(rounds)])]
    return [tuple(run[part]) for run in runs for part in cut_to_size(run, size, limit)]
