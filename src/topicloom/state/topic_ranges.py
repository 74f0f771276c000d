"""Which topic has which messages: ranges of the conversation, and arithmetic over them.

A message is stored once, in the transcript. That it is in a topic is said by rows of one chain:

    {"topic": "t2", "first": 41, "last": 44, "at": "5f..."}                 m41 to m44 are in t2
    {"topic": "t3", "first": 41, "last": 44, "at": "5f...", "also": true}   t3 refers to them too

The last row about a message counts. So splitting, merging, moving, dividing and undoing all append
rows, and each message that was split is in exactly one topic, whatever the rows are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Range = tuple[int, int]
"""Numbers of the first and the last message of a run."""


@dataclass(frozen=True, slots=True)
class TopicRanges:
    """The topic of each message up to the last one that was split. Never changes."""

    starts: Sequence[int] = ()
    """Numbers at which a run of messages of one topic begins, ascending from 1."""
    owners: Sequence[str] = ()
    """The topic of each run; no two neighbours are the same."""
    last: int = 0
    """Number of the last message that is in a topic; 0 for none."""
    held: Mapping[str, tuple[Range, ...]] = field(default_factory=dict)
    """The same by topic, in the order of the conversation; a topic without messages is absent."""
    referred: Mapping[str, tuple[Range, ...]] = field(default_factory=dict)
    """Messages of other topics that a topic refers to, in the order in which they came."""

    @classmethod
    def fold(
        cls, rows: Iterable[Mapping[str, Any]], base: TopicRanges | None = None
    ) -> TopicRanges:
        """The ranges after some rows. Costs time in proportion to the runs before and the rows."""
        base = base or cls()
        starts, owners, last = list(base.starts), list(base.owners), base.last
        changed, referred = set[str](), dict(base.referred)
        for row in rows:
            topic, first, end = row["topic"], int(row["first"]), int(row["last"])
            if row.get("also"):
                referred[topic] = (*referred.get(topic, ()), (first, end))
                continue
            # What was out of view when its neighbours were split goes with them.
            first = min(first, last + 1)
            changed |= {topic, *_replace(starts, owners, last, (first, end), topic)}
            last = max(last, end)
        held = {t: ranges for t, ranges in base.held.items() if t not in changed}
        held |= _collect(starts, owners, last, changed)
        return cls(starts, owners, last, held, referred)

    def topic_of(self, number: int) -> str | None:
        """The topic of a message; None if it is in none yet."""
        if not 1 <= number <= self.last:
            return None
        return self.owners[bisect_right(self.starts, number) - 1]

    def of(self, topic: str) -> tuple[Range, ...]:
        """The messages of a topic, in the order of the conversation."""
        return self.held.get(topic, ())

    def numbers(self, topic: str) -> list[int]:
        """Numbers of the messages of a topic, ascending."""
        return list(list_numbers(self.of(topic)))

    def references(self, topic: str) -> tuple[Range, ...]:
        """The messages of other topics that a topic refers to, in the order in which they came."""
        return self.referred.get(topic, ())

    def group(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        """Those of some messages that are in a topic, by topic."""
        found: dict[str, list[int]] = {}
        for number in numbers:
            topic = self.topic_of(number)
            if topic is not None:
                found.setdefault(topic, []).append(number)
        return found


def list_numbers(ranges: Iterable[Range]) -> Iterator[int]:
    for first, last in ranges:
        yield from range(first, last + 1)


def make_ranges(numbers: Iterable[int], hidden: Collection[int] = ()) -> list[Range]:
    """Numbers as ranges, ascending. What is hidden between two of them does not part them."""
    ranges: list[Range] = []
    for number in sorted(set(numbers)):
        if ranges and all(n in hidden for n in range(ranges[-1][1] + 1, number)):
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    return ranges


def write_rows(
    topic: str, ranges: Iterable[Range], name: Callable[[int], str], *, also: bool = False
) -> list[dict[str, Any]]:
    """Rows that put ranges into a topic, or have it refer to them.

    Args:
        topic: Id of the topic.
        ranges: Messages.
        name: Gives the ref of a message in the transcript by its number: numbers alone do not say
            which branch is meant.
        also: True to refer to them.
    """
    extra = {"also": True} if also else {}
    return [
        {"topic": topic, "first": first, "last": last, "at": name(last), **extra}
        for first, last in ranges
    ]


def _replace(
    starts: list[int], owners: list[str], covered: int, span: Range, topic: str
) -> set[str]:
    """Give a run to a topic, in lists that cover 1 to `covered`; returns whose it was before."""
    first, last = span
    begin = bisect_right(starts, first) - 1
    if first > covered:  # the usual case: it comes behind all others
        if not owners or owners[-1] != topic:
            starts.append(first)
            owners.append(topic)
        return set()
    end = bisect_right(starts, last)
    before = owners[begin:end]
    runs = [(first, topic)]
    if starts[begin] < first:
        runs.insert(0, (starts[begin], before[0]))
    if last < covered and (end == len(starts) or starts[end] > last + 1):
        runs.append((last + 1, before[-1]))
    starts[begin:end] = [start for start, _ in runs]
    owners[begin:end] = [owner for _, owner in runs]
    for place in reversed(range(max(1, begin), min(len(starts), begin + len(runs) + 1))):
        if owners[place] == owners[place - 1]:  # neighbours of the same topic are one run
            del starts[place], owners[place]
    return set(before)


def _collect(
    starts: Sequence[int], owners: Sequence[str], last: int, topics: Collection[str]
) -> dict[str, tuple[Range, ...]]:
    found: dict[str, list[Range]] = {}
    for place, owner in enumerate(owners):
        if owner in topics:
            end = starts[place + 1] - 1 if place + 1 < len(starts) else last
            found.setdefault(owner, []).append((starts[place], end))
    return {topic: tuple(ranges) for topic, ranges in found.items()}
