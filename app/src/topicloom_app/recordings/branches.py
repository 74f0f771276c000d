"""The branches of a conversation whose messages name the one that they follow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Branches:
    """A conversation as a tree of messages, by their ids, cut into branches."""

    shown: list[str]
    """The messages from the first to the newest, or to the one that the export says was shown."""
    others: list[list[str]]
    """Each other branch from where it leaves the one before, oldest first."""

    @property
    def left_out(self) -> list[str]:
        """The messages of the other branches."""
        return [id_ for branch in self.others for id_ in branch]


def find_branches(
    parents: Mapping[str, str | None],
    leaf: object = None,
    times: Mapping[str, float] | None = None,
) -> Branches:
    """Cut the messages of a conversation into branches.

    Args:
        parents: The message that each one follows, in the order of the export. If that one is not
            there, messages that follow the same one are branches; otherwise the export has lost a
            message, and what stands behind the gap goes on with what stands before it.
        leaf: The message that was shown last, if the export says so. What follows it is shown too.
        times: When messages were written, in seconds. Without times, later in the export is newer.
    """
    linked = _close_gaps(parents, times or {})
    children: dict[str, list[str]] = {id_: [] for id_ in linked}
    for id_, parent in linked.items():
        if parent is not None:
            children[parent].append(id_)
    known = _spread_times(linked, times or {})
    newest = {id_: (known.get(id_, 0.0), place) for place, id_ in enumerate(linked)}
    leaves = [id_ for id_ in linked if not children[id_]] or list(linked)
    leaves.sort(key=newest.__getitem__)
    end = leaf if isinstance(leaf, str) and leaf in linked else None
    if end is None:
        end = leaves[-1] if leaves else None
    shown = _go_back(end, linked, set())
    if shown:
        shown += _go_on(shown[-1], children, newest, set(shown))
    taken, others = set(shown), list[list[str]]()
    for other in leaves:
        branch = _go_back(other, linked, taken)
        taken.update(branch)
        if branch:
            others.append(branch)
    # What is part of a circle has no leaf.
    others += [[id_] for id_ in linked if id_ not in taken]
    return Branches(shown, others)


def _spread_times(linked: Mapping[str, str | None], times: Mapping[str, float]) -> dict[str, float]:
    """The times of all messages: those without one have that of the message that they follow."""
    known = {id_: times[id_] for id_ in linked if id_ in times}
    for id_ in linked if known else ():
        way, at = dict[str, None](), id_ if id_ not in known else None
        while at is not None and at not in known and at not in way:
            way[at] = None
            at = linked[at]
        known.update(dict.fromkeys(way, known.get(at, 0.0) if at is not None else 0.0))
    return known


def _close_gaps(
    parents: Mapping[str, str | None], times: Mapping[str, float]
) -> dict[str, str | None]:
    """The same, where what follows a lost message follows the newest one that stands before it."""
    linked: dict[str, str | None] = {}
    for id_, parent in parents.items():
        linked[id_] = parent if parent in parents else None
    lost: dict[str, list[str]] = {}
    for id_, parent in parents.items():
        if parent is not None and parent not in parents:
            lost.setdefault(parent, []).append(id_)
    roots = [id_ for id_, parent in parents.items() if parent is None]
    groups = ([roots] if roots else []) + list(lost.values())
    if len(groups) < 2:
        return linked
    order = {id_: place for place, id_ in enumerate(parents)}

    def age(id_: str) -> tuple[float, int]:
        return times.get(id_, 0.0), order[id_]

    members = [_gather(group, linked) for group in groups]
    # An empty first node has no time: it is the beginning.
    pairs = sorted(
        zip(groups, members, strict=True),
        key=lambda pair: (pair[0] != roots, min(map(age, pair[1]))),
    )
    for (_, before), (group, _) in pairwise(pairs):
        end = max(before, key=age)
        for id_ in group:
            linked[id_] = end
    return linked


def _gather(roots: Collection[str], linked: Mapping[str, str | None]) -> list[str]:
    """Some messages and all that follow them."""
    children: dict[str, list[str]] = {}
    for id_, parent in linked.items():
        if parent is not None:
            children.setdefault(parent, []).append(id_)
    found, waiting = list[str](), list(roots)
    while waiting:
        id_ = waiting.pop()
        found.append(id_)
        waiting += children.get(id_, ())
    return found


def _go_back(leaf: str | None, linked: Mapping[str, str | None], taken: set[str]) -> list[str]:
    """The messages before a leaf and itself, in order; what is taken ends them, and a circle."""
    branch: dict[str, None] = {}
    while leaf is not None and leaf in linked and leaf not in branch and leaf not in taken:
        branch[leaf] = None
        leaf = linked[leaf]
    return list(branch)[::-1]


def _go_on(
    id_: str,
    children: Mapping[str, list[str]],
    newest: Mapping[str, tuple[float, int]],
    taken: set[str],
) -> list[str]:
    """What follows a message, each time the newest that does."""
    found = list[str]()
    while following := [c for c in children[id_] if c not in taken]:
        id_ = max(following, key=newest.__getitem__)
        taken.add(id_)
        found.append(id_)
    return found
