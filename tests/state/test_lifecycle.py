"""The life of a topic: every step of section 7 of the main spec, merging, and no other."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest
from tables import each_row

from topicloom.errors import TransitionError
from topicloom.state.lifecycle import (
    TRANSITIONS,
    TopicEvent,
    TopicState,
    apply_event,
    get_state,
    mark_active,
    mark_archived,
    mark_divided,
)
from topicloom.state.topics import Topic

STATES: tuple[TopicState, ...] = get_args(TopicState)
EVENTS: tuple[TopicEvent, ...] = get_args(TopicEvent)

TABLE = """
    dormant   activate           active
    active    deactivate          dormant
    active    divide         divided
    dormant   divide         divided
    dormant   archive        archived
    archived  revive         active
    active    merge          merged
    dormant   merge          merged
    archived  merge          merged
    archived  restore        dormant
    merged    restore        dormant
"""
STEPS = {(a, e): b for a, e, b in (line.split() for line in TABLE.strip().splitlines())}


def topic_in(state: TopicState) -> tuple[Topic, set[str]]:
    """A topic in a state, with the active set that says so."""
    if state == "active" or state == "dormant":
        return Topic(id="t1", name="Tea"), {"t1"} if state == "active" else set()
    return Topic(id="t1", name="Tea", status=state), set()


def test_divided_is_an_end_and_a_merge_is_only_undone() -> None:
    ends = [(before, event) for before, event in TRANSITIONS if before in ("divided", "merged")]
    assert ends == [("merged", "restore")]


def test_archived_topics_only_come_back_on_request() -> None:
    back = {e for (before, e), after in TRANSITIONS.items() if before == "archived" != after}
    assert back == {"revive", "restore", "merge"}


@each_row("state", STATES)
def test_the_state_of_a_topic(state: TopicState) -> None:
    assert get_state(*topic_in(state)) == state


@each_row(("state", "event"), list(itertools.product(STATES, EVENTS)))
def test_a_row_follows_the_table(state: TopicState, event: TopicEvent) -> None:
    topic, active = topic_in(state)
    if (state, event) not in STEPS:
        with pytest.raises(TransitionError, match="t1 'Tea'"):
            apply_event(topic, event, active)
        return
    after = apply_event(topic, event, active)
    awake = {"t1"} if STEPS[state, event] == "active" else set()
    assert get_state(after, awake) == STEPS[state, event]


def test_which_topics_may_become_active() -> None:
    may: list[TopicState] = ["active", "dormant"]
    for state in may:
        topic, active = topic_in(state)
        assert mark_active(topic, active) == topic
    may_not: list[TopicState] = ["divided", "merged"]
    for state in may_not:
        topic, active = topic_in(state)
        with pytest.raises(TransitionError):
            mark_active(topic, active, asked=True)


def test_only_a_request_wakes_what_is_archived() -> None:
    topic, _ = topic_in("archived")
    with pytest.raises(TransitionError):
        mark_active(topic, ())
    assert mark_active(topic, (), asked=True).status == "open"


@pytest.mark.parametrize("state", ["active", "dormant"])
def test_a_divided_topic_keeps_its_name_and_brief_only(state: TopicState) -> None:
    topic, active = topic_in(state)
    full = topic.model_copy(
        update={
            "brief": "Of tea.",
            "content": "0" * 16,
            "count": 4,
            "tokens": 90,
        }
    )
    assert mark_divided(full, active) == Topic(
        id="t1", name="Tea", brief="Of tea.", status="divided"
    )


def test_archiving_notes_the_month() -> None:
    topic, active = topic_in("dormant")
    after = mark_archived(topic, active, "2026-03")
    assert (after.status, after.archived) == ("archived", "2026-03")
    with pytest.raises(TransitionError):
        mark_archived(topic, {"t1"}, "2026-03")
