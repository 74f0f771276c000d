"""What a split puts right in the topics that there are: runs filed wrong, and loose ends.

What moves is journaled as changes of a review, and undone like them. It happens where a split is
made without a model, at the split alone: prompts change there anyway.
"""

from __future__ import annotations

from collections.abc import Iterator

from topicloom.index.belonging import FiledRuns
from topicloom.nodes.apply_changes import make_changes
from topicloom.nodes.split_draft import SplitDraft
from topicloom.nodes.workspace import Workspace
from topicloom.roles.splitter import name_rounds
from topicloom.state.changes import TopicChange
from topicloom.state.grouping import LOOSE, Regrouping, regroup
from topicloom.state.lifecycle import find_survivor
from topicloom.state.rounds import group_rounds
from topicloom.state.session import Turn
from topicloom.state.topics import Topic, TopicTable

_MESSAGES = 6_000
"""Messages of topics that are looked at together; those of this split come first."""


def put_right(draft: SplitDraft, workspace: Workspace, turn: Turn) -> Turn:
    """Make the changes that the topics of a split, and those near them, need.

    The rows of topics that the split touched are written; the draft goes on from what the changes
    made of them.
    """
    store = draft.store
    if not draft.touched:
        return turn
    draft.session = store.save_topics(draft.session, list(draft.rows.values()))
    table = store.topic_table(draft.session)
    chosen = _choose(table, set(draft.touched))
    filed = workspace.indexed(table).filed(chosen)
    ids = list(dict.fromkeys(home for home in filed.homes if home))
    numbers = {topic: number for number, topic in enumerate(ids)}
    homes = [numbers.get(home, LOOSE) for home in filed.homes]
    settled = frozenset(numbers[t.id] for t in chosen if t.id in numbers and _is_settled(t))
    tokens = [table[i].tokens for i in ids]
    found = regroup(filed.odds, homes, filed.rounds, settled, tokens, draft.limit)
    changes = list(_list_changes(draft, workspace, filed, ids, homes, found))
    if not changes:
        return turn
    draft.session, turn = make_changes(store, draft.session, turn, changes)
    after = store.topic_table(draft.session)
    for topic in after:
        if table.get(topic.id) != topic:
            draft.lent.pop(topic.id, None)
            draft.touched.pop(topic.id, None)
            if topic.status == "open":
                draft.touched[topic.id] = topic
    for topic_id in list(draft.moved):
        heir = find_survivor(after[topic_id], after.topics)
        if heir != topic_id:
            draft.moved.setdefault(heir, []).extend(draft.moved.pop(topic_id))
    return turn


def _is_settled(topic: Topic) -> bool:
    """True if a topic may gain messages and lose none.

    A person, a division or an imported chat made it.
    """
    return bool(topic.by_hand) or topic.parent is not None or topic.chat is not None


def _choose(table: TopicTable, touched: set[str]) -> list[Topic]:
    """The topics to look at: those of the split, loose ends, then what was last spoken of."""
    known = [*table.open(), *table.loose()]
    known.sort(key=lambda t: (t.id not in touched, not t.loose, -t.newest))
    chosen, left = list[Topic](), _MESSAGES
    for topic in known:
        left -= topic.count
        if left < 0 and chosen:
            break
        chosen.append(topic)
    return chosen


def _list_changes(
    draft: SplitDraft,
    workspace: Workspace,
    filed: FiledRuns,
    ids: list[str],
    before: list[int],
    found: Regrouping,
) -> Iterator[TopicChange]:
    """The changes that make one grouping of another, merges first."""
    for group, other in sorted(found.merged.items()):
        if other < len(ids):
            yield TopicChange(topic=ids[other], absorbs=ids[group], reason="they are one matter")
    taken = {t.name for t in draft.topics.values()}
    moved: dict[int, list[int]] = {}
    for place, (old, new) in enumerate(zip(before, found.homes, strict=True)):
        if new not in (old, LOOSE) and found.merged.get(old, old) != new:
            moved.setdefault(new, []).append(place)
    for group, places in sorted(moved.items()):
        takes = tuple(n for p in places for n in range(filed.first[p], filed.last[p] + 1))
        if group < len(ids):
            yield TopicChange(topic=ids[group], takes=takes)
        else:
            said = draft.store.messages(draft.session, min(takes), max(takes))
            rounds = group_rounds(m for m in said if m.seq in set(takes))
            name = name_rounds(rounds, draft.deps.embedder, taken=taken)
            taken.add(name)
            yield TopicChange(topic="", name=name, takes=takes)
