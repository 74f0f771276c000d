"""Putting right, at a split, what the topics that it touched and those near them need."""

from __future__ import annotations

from topicloom.nodes.apply_changes import make_changes
from topicloom.nodes.repairs import SPLIT_REPAIRS, find_repairs
from topicloom.nodes.workspace import Workspace
from topicloom.search.embedder import Embedder
from topicloom.state.lifecycle import find_survivor
from topicloom.state.session import Turn
from topicloom.topics.split_draft import SplitDraft

_YOUNG, _REPAIRED = 256, 32
"""Messages up to which each split looks for what is filed wrong, and after how many more it does so
again: in a small window each turn splits, and to look through a long conversation takes time."""


def put_right(
    draft: SplitDraft, workspace: Workspace, turn: Turn, tail: int, embedder: Embedder
) -> Turn:
    """Make the changes that the topics of a split up to `tail`, and those near them, need.

    The rows of topics that the split touched are written; the draft goes on from what the changes
    made of them.
    """
    store = draft.store
    due = tail <= _YOUNG or tail // _REPAIRED > draft.session.tail // _REPAIRED
    if not (due and draft.touched):
        return turn
    table = store.topic_table(draft.save())
    changes = find_repairs(
        workspace, draft.session, draft.touched, embedder, draft.limit, SPLIT_REPAIRS
    )
    if not changes:
        return turn
    draft.session, turn = make_changes(store, draft.session, turn, changes)
    after = store.topic_table(draft.session)
    for topic in after:
        if table.get(topic.id) != topic:
            draft.adjusted.pop(topic.id, None)
            draft.touched.pop(topic.id, None)
            if topic.status == "open":
                draft.touched[topic.id] = topic
    for topic_id in list(draft.moved):
        heir = find_survivor(after[topic_id], after.topics)
        if heir != topic_id:
            draft.moved.setdefault(heir, []).extend(draft.moved.pop(topic_id))
    return turn
