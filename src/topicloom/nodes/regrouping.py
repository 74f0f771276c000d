"""What is put right in the topics that there are: runs filed wrong, and loose ends.

It happens where messages are split without a model: at the split, and in reviews. Prompts change
there anyway. What moves is journaled as changes of a review, and undone like them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from topicloom.nodes.deps import Deps
from topicloom.nodes.workspace import Workspace
from topicloom.roles.splitter import name_rounds
from topicloom.search.embedder import Embedder
from topicloom.state.changes import TopicChange
from topicloom.state.grouping import LOOSE, NEVER, Odds, Regrouping, regroup
from topicloom.state.rounds import group_rounds
from topicloom.state.session import Session
from topicloom.state.topics import Topic
from topicloom.topics.belonging import FiledRuns

_MESSAGES = 6_000
"""Messages of topics that are looked at together; those of the topics named first come first."""
SPLIT_REGROUPINGS, REVIEW_REGROUPINGS = 12, 24
"""Changes at most in a split, which a turn waits for, and in a review."""


def find_regroupings_of_review(
    deps: Deps, workspace: Workspace, session: Session
) -> list[TopicChange]:
    """What a review puts right: nothing if there are no new messages since the last one.

    Topics that got messages since come first.
    """
    table = workspace.store.topic_table(session)
    fresh = {t.id for t in table.open() if t.content != t.reviewed}
    if not fresh:
        return []
    return find_regroupings(
        workspace, session, fresh, deps.embedder, deps.rooms.topic, REVIEW_REGROUPINGS
    )


def find_regroupings(
    workspace: Workspace,
    session: Session,
    first: Collection[str],
    embedder: Embedder,
    limit: int,
    most: int,
) -> list[TopicChange]:
    """The changes that put right what is filed wrong; nothing that a person settled.

    What an arbiter told apart stays apart. The topics named `first` are looked at before others; no
    topic gets more than `limit` tokens; `most` counts joined topics and moved runs.
    """
    table = workspace.store.topic_table(session)
    loose = [t for t in table.loose() if not t.by_hand]
    chosen = _choose([*table.open(), *loose], first)
    filed = workspace.indexed(session, table).filed(chosen, session.boundaries)
    ids = list(dict.fromkeys(topic for topic in filed.topics if topic))
    numbers = {topic: number for number, topic in enumerate(ids)}
    groups = [numbers.get(topic, LOOSE) for topic in filed.topics]
    settled = frozenset(numbers[t.id] for t in chosen if t.id in numbers and _is_settled(t))
    tokens = [table[i].tokens for i in ids]
    found = regroup(
        _part(filed, session.boundaries), groups, filed.rounds, settled, tokens, limit, most
    )
    return list(_list_changes(workspace, session, embedder, filed, ids, groups, found))


def _part(filed: FiledRuns, boundaries: Collection[int]) -> Odds:
    """Log odds [r, r]: runs that begin with such a message stay apart from those right before."""
    odds = filed.odds.copy()
    for place in range(1, len(filed.first)):
        follows = filed.first[place] == filed.last[place - 1] + 1
        if follows and filed.first[place] in boundaries:
            odds[place, place - 1] = odds[place - 1, place] = NEVER
    return odds


def _is_settled(topic: Topic) -> bool:
    """True if a topic may gain messages and lose none.

    A person, a division or an imported chat made it.
    """
    return bool(topic.by_hand) or topic.parent is not None or topic.chat is not None


def _choose(topics: Collection[Topic], first: Collection[str]) -> list[Topic]:
    """The topics to look at: those named first, loose ends, then what was last spoken of."""
    known = sorted(topics, key=lambda t: (t.id not in first, not t.loose, -t.newest))
    chosen, left = list[Topic](), _MESSAGES
    for topic in known:
        left -= topic.count
        if left < 0 and chosen:
            break
        chosen.append(topic)
    return chosen


def _list_changes(
    workspace: Workspace,
    session: Session,
    embedder: Embedder,
    filed: FiledRuns,
    ids: list[str],
    before: list[int],
    found: Regrouping,
) -> Iterator[TopicChange]:
    """The changes that make one grouping of another, merges first."""
    for group, other in sorted(found.merged.items()):
        if other < len(ids):
            yield TopicChange(topic=ids[other], absorbs=ids[group], reason="they are one matter")
    taken = {t.name for t in workspace.store.topic_table(session)}
    moved: dict[int, list[int]] = {}
    for place, (old, new) in enumerate(zip(before, found.groups, strict=True)):
        if new not in (old, LOOSE) and found.merged.get(old, old) != new:
            moved.setdefault(new, []).append(place)
    for group, places in sorted(moved.items()):
        takes = tuple(n for p in places for n in range(filed.first[p], filed.last[p] + 1))
        if group < len(ids):
            yield TopicChange(topic=ids[group], takes=takes)
        else:
            between = workspace.store.messages(session, min(takes), max(takes))
            rounds = group_rounds(m for m in between if m.seq in set(takes))
            name = name_rounds(rounds, embedder, taken=taken)
            taken.add(name)
            yield TopicChange(topic="", name=name, takes=takes)
