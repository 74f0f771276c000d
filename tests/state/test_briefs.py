"""Briefs written beside the graph are taken in once, and only while they fit."""

from __future__ import annotations

from topicloom.state.changes import apply_brief_updates, make_brief_update
from topicloom.state.topics import Topic, TopicTable

TEA = Topic(id="t1", name="Tea", brief="Old.", content="r1", count=2)
OAK = Topic(id="t2", name="Oak", brief="Old.", content="r2", count=2)


def topic_table(*topics: Topic) -> TopicTable:
    return TopicTable({t.id: t for t in topics})


def test_an_update_changes_name_and_brief_and_nothing_else() -> None:
    update = make_brief_update(TEA, "Green tea", "New.")
    assert update is not None
    (topic,) = apply_brief_updates(topic_table(TEA, OAK), [update])
    assert topic == TEA.model_copy(update={"name": "Green tea", "brief": "New."})
    assert apply_brief_updates(topic_table(topic, OAK), [update]) == [], "it is not applied twice"


def test_what_has_changed_since_is_left_alone() -> None:
    update = make_brief_update(TEA, "Tea", "New.")
    assert update is not None
    for change in (
        {"content": "r9"},
        {"brief": "Newer."},
        {"name": "Teas"},
        {"status": "archived"},
    ):
        assert apply_brief_updates(topic_table(TEA.model_copy(update=change)), [update]) == []
    assert apply_brief_updates(topic_table(OAK), [update]) == []


def test_the_same_words_are_no_update() -> None:
    assert make_brief_update(TEA, "Tea", "Old.") is None
