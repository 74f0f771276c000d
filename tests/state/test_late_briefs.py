"""Briefs that come after the split that wanted them."""

from __future__ import annotations

from topicloom.state.changes import (
    BriefUpdate,
    apply_brief_updates,
    keep_names_apart,
    make_brief_update,
)
from topicloom.state.topics import Topic, TopicTable


def test_a_late_brief_does_not_take_the_name_of_another_topic() -> None:
    one, other = Topic(id="t1", name="Tiles", count=2), Topic(id="t2", name="Bath", count=2)
    table = TopicTable({"t1": one, "t2": other})
    gone = BriefUpdate(topic="t9", name="x", brief="", seen="")
    updates = [make_brief_update(one, "Bath", "About tiles."), gone]
    kept = keep_names_apart(table, [u for u in updates if u])
    assert [(u.topic, u.name, u.brief) for u in kept] == [("t1", "Tiles", "About tiles.")]
    assert [(t.name, t.brief) for t in apply_brief_updates(table, kept)] == [
        ("Tiles", "About tiles.")
    ]
