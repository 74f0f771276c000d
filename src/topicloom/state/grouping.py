"""Grouping runs of rounds into topics by how likely they belong together.

`topics/belonging.py` gives the likelihoods; the decisions here are pure functions. Two groups
are as close as the mean log odds of their pairs (average link), and are joined while the closest
two are likelier to belong together than not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Odds = NDArray[np.float64]
"""Log odds that pairs belong together; above 0 it is likelier that they do."""

LOOSE_ROUNDS = 3
"""Rounds from which a group is a topic; what stays smaller is a loose end."""
LOOSE = -1
"""The group of loose ends among the numbers of groups."""
MERGE_ODDS, MOVE_ODDS = 0.3, 0.2
"""Log odds from which two topics are one matter, and by which a run has to be closer to another
topic than to its own: what is as good either way stays where it is."""
NEVER = -1e6
"""Log odds of what must not come together."""
_PASSES = 3
"""Times that each run may look for a better group."""


class _Links:
    """How close groups are, while they are joined one by one."""

    def __init__(self, sums: Odds, sizes: NDArray[np.float64], apart: NDArray[np.bool_]) -> None:
        """Groups whose pairs' log odds come to `sums` [g, g]; none joins another that is `apart`.

        Both arrays are changed as groups are joined.
        """
        self._sums, self.sizes, self._apart = sums, sizes, apart
        self._close = sums / np.outer(sizes, sizes)
        self._close[apart[:, None] & apart[None, :]] = -np.inf
        np.fill_diagonal(self._close, -np.inf)

    def find_closest(self, needed: Odds | float = 0.0) -> tuple[int, int] | None:
        """The two groups that are closest for the log odds that they need; None if none reach it.

        That is more than `needed`, of all pairs or of each [g, g].
        """
        spare = self._close - needed
        a, b = divmod(int(spare.argmax()), len(self.sizes))
        return (a, b) if spare[a, b] > 0 else None

    def keep_apart(self, a: int, b: int) -> None:
        """Leave a pair out from now on."""
        self._close[a, b] = self._close[b, a] = -np.inf

    def join(self, a: int, b: int) -> None:
        self._sums[a] += self._sums[b]
        self._sums[:, a] = self._sums[a]
        self.sizes[a] += self.sizes[b]
        row = self._sums[a] / (self.sizes[a] * self.sizes)
        gone = np.isneginf(self._close).all(axis=1)
        row[gone | (self._apart & self._apart[a])] = -np.inf
        row[[a, b]] = -np.inf
        self._close[a], self._close[:, a] = row, row
        self._close[b], self._close[:, b] = -np.inf, -np.inf


def link_groups(sums: Odds, sizes: Sequence[int], kept: Sequence[bool]) -> list[int]:
    """Join groups, the closest first; two that are both `kept` are never joined.

    Args:
        sums: Log odds between groups [g, g], summed over the pairs of their members.
        sizes: Members of each group [g].
        kept: True for groups that stay apart from one another [g].

    Returns:
        For each group, the first of those that it was joined with [g]; a kept one if there is one.
    """
    first = list(range(len(sizes)))
    if len(sizes) < 2:
        return first
    links = _Links(sums.astype(np.float64), np.array(sizes, dtype=np.float64), np.array(kept))
    while pair := links.find_closest():
        a, b = sorted(pair, key=lambda group: (not kept[group], group))
        first = [a if f == b else f for f in first]
        links.join(a, b)
    return first


@dataclass(frozen=True, slots=True)
class Regrouping:
    """What becomes of runs that are in topics already."""

    groups: tuple[int, ...]
    """The group of each run; numbers past those of the topics are new ones, `LOOSE` is none."""
    merged: dict[int, int]
    """Groups whose runs all went to another one, and that one."""


def regroup(
    odds: Odds,
    groups: Sequence[int],
    rounds: Sequence[int],
    settled: frozenset[int] = frozenset(),
    tokens: Sequence[int] = (),
    limit: float = np.inf,
    most: int = 12,
) -> Regrouping:
    """Put right what is filed wrong: join groups, let runs change places, gather loose ends.

    Args:
        odds: Log odds between all pairs of runs [n, n].
        groups: The group of each run [n], from 0; `LOOSE` for loose ends.
        rounds: Rounds of each run [n].
        settled: Groups that a person settled: they may be added to, and lose nothing.
        tokens: Tokens of each group; none is joined, and none gains a run, that comes to more than
            the `limit`.
        most: Changes at most: each joined group and each run that moves is one.
    """
    before = np.asarray(groups)
    count = int(before.max(initial=-1)) + 1
    now = before.copy()
    free = np.flatnonzero(before == LOOSE)
    now[free] = count + np.arange(len(free))
    held = np.zeros(count + len(free))
    held[: len(tokens)] = tokens
    budget = most - _join(odds, now, settled, held, limit, count, most)
    merged = {
        group: int(now[place])
        for group in range(count)
        for place in np.flatnonzero(before == group)[:1]
        if now[place] != group
    }
    room = np.where(held > 0, limit - held, np.inf)
    _improve(odds, now, settled, _share_tokens(tokens, before, rounds), room, budget)
    gathered = Counter[int]()
    for group, size in zip(now.tolist(), rounds, strict=True):
        gathered[group] += size
    now[[h >= count and gathered[h] < LOOSE_ROUNDS for h in now.tolist()]] = LOOSE
    return Regrouping(tuple(now.tolist()), merged)


def _join(
    odds: Odds,
    now: NDArray[np.intp],
    settled: frozenset[int],
    tokens: NDArray[np.float64],
    limit: float,
    count: int,
    most: int,
) -> int:
    """Join groups in place, the closest first; returns how many of the topics were joined."""
    groups, place = np.unique(now, return_inverse=True)
    members = np.zeros((len(groups), len(now)))
    members[place, np.arange(len(now))] = 1
    fixed = np.array([g in settled for g in groups.tolist()])
    links = _Links(members @ odds @ members.T, members.sum(axis=1), fixed)
    topic = groups < count
    needed = np.where(topic[:, None] & topic[None, :], MERGE_ODDS, 0.0)
    joined = 0
    while pair := links.find_closest(needed):
        # What is settled stays, then what is a topic already, then the larger one.
        b, a = sorted(pair, key=lambda x: (fixed[x], topic[x], links.sizes[x], -x))
        if topic[b]:
            if joined == most or tokens[groups[a]] + tokens[groups[b]] > limit:
                links.keep_apart(a, b)
                continue
            joined += 1
        now[now == groups[b]] = groups[a]
        tokens[groups[a]] += tokens[groups[b]]
        links.join(a, b)
    return joined


def _share_tokens(
    tokens: Sequence[int], groups: NDArray[np.intp], rounds: Sequence[int]
) -> NDArray[np.float64]:
    """Tokens of each run [n] by its share of the rounds of its group; 0 for loose ends."""
    found = np.zeros(len(groups))
    for group, whole in enumerate(tokens):
        own = np.flatnonzero(groups == group)
        held = np.asarray(rounds, dtype=np.float64)[own]
        found[own] = whole * held / max(1.0, held.sum())
    return found


def _improve(
    odds: Odds,
    now: NDArray[np.intp],
    settled: frozenset[int],
    tokens: NDArray[np.float64],
    room: NDArray[np.float64],
    budget: int,
) -> None:
    """Let each run move to the group that it is closest to, in place, until all are content.

    `tokens` are those of each run, `room` is what each group may gain.
    """
    groups, place = np.unique(now, return_inverse=True)
    members = np.zeros((len(now), len(groups)))
    members[np.arange(len(now)), place] = 1
    own_odds = odds - np.diag(np.diag(odds))
    sums, sizes = own_odds @ members, members.sum(axis=0)
    for _ in range(_PASSES):
        moved = False
        for run in range(len(now)):
            own = int(place[run])
            if int(groups[own]) in settled or budget <= 0:
                continue
            close = sums[run] / np.maximum(sizes, 1)
            close[(sizes == 0) | (room[groups] < tokens[run])] = -np.inf
            stays = sums[run, own] / (sizes[own] - 1) if sizes[own] > 1 else 0.0
            close[own] = -np.inf
            best = int(close.argmax())
            if close[best] <= max(stays, 0.0) + MOVE_ODDS:
                continue
            sums[:, own] -= own_odds[:, run]
            sums[:, best] += own_odds[:, run]
            sizes[own] -= 1
            sizes[best] += 1
            room[groups[own]] += tokens[run]
            room[groups[best]] -= tokens[run]
            place[run], moved = best, True
            now[run] = groups[best]
            budget -= 1
        if not moved:
            return
