"""Putting right, at a split, what the topics that it touched and those near them need."""

from __future__ import annotations

from topicloom.nodes.apply_changes import make_changes
from topicloom.nodes.repairs import SPLIT_REPAIRS, find_repairs
from topicloom.nodes.workspace import Workspace
from topicloom.search.embedder import Embedder
from topicloom.state.lifecycle import find_survivor
from topicloom.state.session import Turn
from topicloom.topics.split_draft import SplitDraft


def put_right(draft: SplitDraft, workspace: Workspace, turn: Turn, embedder: Embedder) -> Turn:
    """Make the changes that the topics of a split, and those near them, need.

    The rows of topics that the split touched are written; the draft goes on from what the changes
    made of them.
    """
    store = draft.store
    if not draft.touched:
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
