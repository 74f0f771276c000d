"""Splitting: the share of the tail that moves into topics, and the topic of each round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import BaseModel, Field

from topicloom.state.rounds import Round
from topicloom.state.stored_message import StoredMessage


class SplitPolicy(BaseModel, frozen=True, extra="forbid"):
    """Thresholds of a split."""

    trigger: float = Field(default=0.7, gt=0, le=1)
    """Room is made when the main window is filled more than this."""
    target: float = Field(default=0.58, gt=0, lt=1)
    """After that, messages fill this share of the room that is left for them. If messages in no
    topic fill more, a split moves them. A larger share means fewer hits of a provider's cache
    (`docs/research/benchmarks.md`)."""
    unsplit: float = Field(default=0.125, ge=0, lt=1)
    """Share of this room whose messages a split leaves in no topic. What it moves stays in view as
    long as it fits the target."""


class SplitPlan(BaseModel, frozen=True):
    """The cut that brings the estimate back under the target."""

    tail: int
    """Number of the first message that stays unsplit."""
    view: int
    """Number of the first message that stays in view."""


@dataclass(frozen=True, slots=True)
class PromptParts:
    """What a prompt is expected to consist of, in the provider's tokens."""

    fixed: int
    """Instructions, tools, facts, and the note that this turn is expected to add."""
    notes: int
    """Recall notes since the last split, and what an application shows of its data."""
    messages: int
    """Messages in view."""

    @property
    def total(self) -> int:
        return self.fixed + self.notes + self.messages


LOOSE_ENDS = "loose"
"""Stands for the id of a topic in an assignment of what makes no topic."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The topic of one message, by a splitter."""

    message: str
    """Short id of the message."""
    topic: str | None = None
    """Id of an existing topic, or `LOOSE_ENDS`; None for a new one."""
    name: str = ""
    """Name of the new topic: equal names are one topic."""
    brief: str = ""
    """Brief of the new topic."""
    also: tuple[str, ...] = ()
    """Other topics that the message belongs to as well: ids, or names of new ones."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Rounds that go to one topic together."""

    topic: str | None
    """Id of an existing topic, or `LOOSE_ENDS`; None for a new one."""
    name: str
    brief: str
    """Brief of the new topic, as far as the splitter wrote one."""
    rounds: tuple[Round, ...]
    """In conversation order."""
    also: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Other topics, ids or names of new ones, that a round belongs to as well, by the number of its
    first message."""


def decide_split(
    now: SplitPlan,
    rounds: Callable[[], Sequence[Round]],
    size: Callable[[StoredMessage], int],
    *,
    expected: float,
    room: float,
    window: int,
    policy: SplitPolicy,
) -> SplitPlan | None:
    """The cut to make before the next reply; None if the prompt is not past the trigger.

    `rounds` gives those in view, oldest first, and is only called if the prompt will not fit;
    the `size` of a message, `expected`, `room` for them until the next split and `window` are
    tokens.
    """
    if expected <= policy.trigger * window:
        return None
    shown = rounds()
    sizes = [sum(map(size, round_.messages)) for round_ in shown]
    return plan_split(now, shown, sizes, max(room, window // 10), policy)


def explain_split(
    now: SplitPlan,
    plan: SplitPlan,
    rounds: Sequence[Round],
    parts: PromptParts,
    window: int,
    policy: SplitPolicy,
) -> str:
    """Why room was made, and how: a sentence for the receipt. The window is in tokens."""
    moved = sum(now.tail <= round_.first < plan.tail for round_ in rounds)
    hidden = sum(round_.first < plan.view for round_ in rounds)
    done = [f"{_count_rounds(moved)} moved into topics" if moved else "recall notes were dropped"]
    if hidden:
        done.append(f"{_count_rounds(hidden)} left the view")
    return (
        f"room was made: the prompt was expected to have {parts.total:,} tokens, more than"
        f" {policy.trigger:.0%} of {window:,} (instructions, tools and expected recall"
        f" {parts.fixed:,}, recall notes {parts.notes:,}, messages in view {parts.messages:,});"
        f" {', '.join(done)}"
    )


def _count_rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def keep_newest(unsplit: Sequence[Round], shown: Sequence[StoredMessage], first: int) -> SplitPlan:
    """Move everything into topics but the round that the turn's first message belongs to.

    A late reply belongs to an earlier round. `shown` may stay in view, oldest first.
    """
    starts = [round_.first for round_ in unsplit]
    tail = max((start for start in starts if start <= first), default=first)
    view = next((r.seq for r in shown if r.role == "user" or r.seq == 1), tail)
    return SplitPlan(tail=tail, view=min(view, tail))


def plan_split(
    now: SplitPlan, rounds: Sequence[Round], sizes: Sequence[int], room: float, policy: SplitPolicy
) -> SplitPlan:
    """Choose the cut that brings the messages in view to the target; sizes and room are tokens.

    Notes are dropped whenever room is made, which costs no model anything. Messages leave the view
    for it, whole rounds, the oldest first; the newest round always stays, whatever its size. Only
    where one would leave that is in no topic do rounds move into topics, and then all but the
    newest few: they stay in view, and many turns pass until the next rounds have to move. Of rounds
    of s tokens, more than min(t - u, t - s) / s come between two splits, with t and u the target's
    and the unsplit share of the room.
    """
    # There is no round where all that was in view was removed.
    start = _find_suffix(sizes, policy.target * room) if sizes else 0
    if start == 0:
        return now
    view = rounds[start].first
    if view <= now.tail:
        return SplitPlan(tail=now.tail, view=view)
    tail = _find_suffix(sizes, min(policy.unsplit, policy.target) * room)
    return SplitPlan(tail=rounds[tail].first, view=view)


def _find_suffix(sizes: Sequence[int], limit: float) -> int:
    """Index of the first round of the longest suffix within the limit; at least one round."""
    start, total = len(sizes) - 1, sizes[-1]
    while start > 0 and total + sizes[start - 1] <= limit:
        start -= 1
        total += sizes[start]
    return start


def cut_to_size(rounds: Sequence[Round], size: Callable[[Round], int], limit: int) -> list[slice]:
    """Runs of rounds of at most `limit` in sum; one round may exceed it alone."""
    cuts, total = [0], 0
    for index, item in enumerate(map(size, rounds)):
        if index and total + item > limit:
            cuts.append(index)
            total = 0
        total += item
    return [slice(a, b) for a, b in zip(cuts, [*cuts[1:], len(rounds)], strict=True) if a < b]


def group_assignments(
    rounds: Sequence[Round], assignments: Sequence[Assignment], known: Container[str]
) -> tuple[list[Portion], list[Round]]:
    """The portions of whole rounds in a splitter's answer, and the rounds that it does not cover.

    A round goes where most of its messages were sent (on a tie, where its first one was).
    Assignments of unknown messages or topics don't count, nor do references to the topic that the
    round goes to.
    """
    usable = {
        a.message: a for a in assignments if (a.topic in known if a.topic else a.name.strip())
    }
    portions: dict[tuple[str | None, str], list[Round]] = {}
    briefs: dict[tuple[str | None, str], str] = {}
    also: dict[int, tuple[str, ...]] = {}
    uncovered: list[Round] = []
    for round_ in rounds:
        votes = [usable[i] for i in round_.ids if i in usable]
        if not votes:
            uncovered.append(round_)
            continue
        key = Counter(map(_get_topic_key, votes)).most_common(1)[0][0]
        portions.setdefault(key, []).append(round_)
        followed = [vote for vote in votes if _get_topic_key(vote) == key]
        brief = next((vote.brief for vote in followed if vote.brief), "")
        briefs[key] = briefs.get(key) or brief
        others = dict.fromkeys(i for vote in followed for i in vote.also)
        also[round_.first] = tuple(i for i in others if i not in key)
    return [
        Portion(*key, briefs[key], tuple(b), {r.first: also[r.first] for r in b if also[r.first]})
        for key, b in portions.items()
    ], uncovered


def name_opened(assignments: Iterable[Assignment], opened: Mapping[str, str]) -> list[Assignment]:
    """Assignments in which new topics go by name, that were shown under ids for one call alone."""
    return [
        replace(
            a,
            topic=None if a.topic in opened else a.topic,
            name=opened.get(a.topic or "", a.name),
            also=tuple(opened.get(i, i) for i in a.also),
        )
        for a in assignments
    ]


def find_before(portions: Iterable[Portion], round_: Round) -> Portion | None:
    """The portion that the round right before a round is in, without its rounds."""
    for portion in portions:
        if any(b.last == round_.first - 1 for b in portion.rounds):
            return replace(portion, rounds=(), also={})
    return None


def follow_segments(
    portions: Sequence[Portion], left: Sequence[Round], continues: Mapping[int, float]
) -> tuple[list[Portion], list[Round]]:
    """Give rounds that were left out to the portions that they go on with; and the other rounds.

    `continues` are the log odds of it, by the number of the first message.
    """
    owners = {b.last: portion for portion in portions for b in portion.rounds}
    followed, rest = list[Portion](), list[Round]()
    for round_ in left:
        before = owners.get(round_.first - 1)
        if before is None or continues[round_.first] <= 0:
            rest.append(round_)
        else:
            owners[round_.last] = before
            followed.append(replace(before, rounds=(round_,), also={}))
    return merge_assignments([*portions, *followed]), rest


def _get_topic_key(assigned: Assignment | Portion) -> tuple[str | None, str]:
    """A key that all that goes to one topic shares."""
    return assigned.topic, "" if assigned.topic else assigned.name


def merge_assignments(portions: Iterable[Portion]) -> list[Portion]:
    """Portions of one topic made one, with the rounds of several answers in conversation order."""
    found: dict[tuple[str | None, str], Portion] = {}
    for portion in portions:
        key = _get_topic_key(portion)
        before = found.get(key, replace(portion, rounds=()))
        rounds = sorted((*before.rounds, *portion.rounds), key=lambda b: b.first)
        also = {**before.also, **portion.also}
        found[key] = replace(before, rounds=tuple(rounds), also=also)
    return list(found.values())
