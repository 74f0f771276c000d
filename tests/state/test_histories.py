"""Random histories of topics: every message keeps one home, whole, whatever becomes of topics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import cast

import pytest
from hypothesis import given, settings, strategies as st

from topicloom.errors import TransitionError
from topicloom.state.activation import transfer_activation
from topicloom.state.dividing import divide_rounds
from topicloom.state.hierarchy import find_continuation, find_path, find_successors
from topicloom.state.lifecycle import (
    TRANSITIONS,
    TopicEvent,
    TopicState,
    apply_event,
    get_state,
    mark_active,
    mark_archived,
    mark_divided,
    merge_in_order,
    merge_topic_rows,
)
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.splitting import Portion
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic

LIMIT = 60
EDGES = {(before, after) for (before, _), after in TRANSITIONS.items()}


@dataclass(frozen=True)
class Act:
    """Something that happens; numbers are taken modulo what there is."""

    kind: str
    one: int
    other: int
    size: int


acts = st.lists(
    st.builds(
        Act,
        st.sampled_from(
            [
                "create",
                *["append"] * 4,
                "activate",
                "deactivate",
                "divide",
                "archive",
                "revive",
                "merge",
            ]
        ),
        st.integers(0, 30),
        st.integers(0, 30),
        st.integers(1, 40),
    ),
    max_size=60,
)


@dataclass
class World:
    """Topics with their messages, as a session's storage would have them."""

    topics: dict[str, Topic] = field(default_factory=dict)
    contents: dict[str, list[StoredMessage]] = field(default_factory=dict)
    active: dict[str, tuple[float, ...]] = field(default_factory=dict)
    transcript: list[StoredMessage] = field(default_factory=list)
    went_to: dict[str, str] = field(default_factory=dict)
    """The topic that each message was first put into."""

    def act(self, act: Act) -> None:
        if act.kind == "create" or not self.topics:
            self.create(awake=act.size % 2 == 0)
            return
        ids = list(self.topics)
        topic = self.topics[ids[act.one % len(ids)]]
        if act.kind == "append":
            self.append(topic, act.size)
        elif act.kind == "merge":
            self.merge(topic, self.topics[ids[act.other % len(ids)]])
        elif act.kind == "divide":
            self.divide(topic, act.other)
        else:
            self.live(topic, act.kind)

    def create(self, *, awake: bool, parent: str | None = None, name: str = "Tea") -> Topic:
        topic = Topic(id=f"t{len(self.topics) + 1}", name=name, parent=parent)
        self.topics[topic.id], self.contents[topic.id] = topic, []
        if awake:
            self.active[topic.id] = (0.6,)
        return topic

    def append(self, topic: Topic, size: int) -> None:
        """A new round, to what goes on of a topic, if anything does."""
        goal = find_continuation(topic.id, self.topics)
        if goal is None:
            assert get_state(topic, self.active) not in ("active", "dormant")
            return
        number = len(self.transcript) + 1
        said = [
            StoredMessage(seq=number, role="user", text="x" * size, time=""),
            StoredMessage(seq=number + 1, role="assistant", text="y", time=""),
        ]
        self.transcript += said
        self.went_to |= dict.fromkeys((r.id for r in said), goal.id)
        self.keep(goal, [*self.contents[goal.id], *said])

    def keep(self, topic: Topic, messages: list[StoredMessage]) -> None:
        self.contents[topic.id] = messages
        self.topics[topic.id] = topic.model_copy(
            update={"count": len(messages), "newest": messages[-1].seq if messages else 0}
        )

    def live(self, topic: Topic, kind: str) -> None:
        event = cast("TopicEvent", kind)
        after = TRANSITIONS.get((get_state(topic, self.active), event))
        if after is None:
            with pytest.raises(TransitionError):
                apply_event(topic, event, self.active)
            return
        if event == "archive":
            self.topics[topic.id] = mark_archived(topic, self.active, "2026-03")
        elif event == "deactivate":
            self.topics[topic.id] = apply_event(topic, event, self.active)
        else:
            self.topics[topic.id] = mark_active(topic, self.active, asked=event == "revive")
        self.active.pop(topic.id, None)
        if after == "active":
            self.active[topic.id] = (0.5,)

    def divide(self, topic: Topic, labels: int) -> None:
        rounds = group_rounds(self.contents[topic.id])
        if get_state(topic, self.active) not in ("active", "dormant"):
            with pytest.raises(TransitionError):
                mark_divided(topic, self.active)
            return
        if len(rounds) < 2:
            return
        if topic.id not in self.active:
            self.live(topic, "activate")
        said = [
            Portion(
                None, f"n{label}", "", tuple(b for b in rounds if b.first % (labels + 1) == label)
            )
            for label in range(labels + 1)
        ]
        parts = divide_rounds(topic.name, rounds, [p for p in said if p.rounds], _size, LIMIT)
        row = mark_divided(topic, self.active)
        children = [self.create(awake=False, parent=topic.id, name=p.name) for p in parts]
        for child, part in zip(children, parts, strict=True):
            self.keep(child, [r for b in part.rounds for r in b.messages])
        self.topics[topic.id], self.contents[topic.id] = row, []
        self.active = transfer_activation(
            self.active, topic.id, [t.id for t in find_successors(topic.id, self.topics)]
        )

    def merge(self, survivor: Topic, other: Topic) -> None:
        state, gone_from = (get_state(t, self.active) for t in (survivor, other))
        may = state in ("active", "dormant") and gone_from in ("active", "dormant", "archived")
        if survivor.id == other.id or not may:
            with pytest.raises(TransitionError):
                merge_topic_rows(survivor, other, self.active)
            return
        kept, gone = merge_topic_rows(survivor, other, self.active)
        messages = merge_in_order(self.contents[survivor.id], self.contents[other.id])
        self.topics[gone.id], self.contents[gone.id] = gone, []
        self.keep(kept, messages)
        self.active = transfer_activation(self.active, other.id, [survivor.id])

    def states(self) -> dict[str, TopicState]:
        return {t.id: get_state(t, self.active) for t in self.topics.values()}

    def check(self, before: dict[str, TopicState]) -> None:
        now = self.states()
        for topic_id, state in now.items():
            was = before.get(topic_id)
            woke_first = was == "dormant" and state == "divided"
            assert was in (None, state) or (was, state) in EDGES or woke_first
        assert all(self.topics[i].status == "open" for i in self.active)
        where = {r.id: i for i, held in self.contents.items() for r in held}
        homes = Counter(r.id for held in self.contents.values() for r in held)
        assert homes == Counter(r.id for r in self.transcript)
        for topic_id, held in self.contents.items():
            assert not held or now[topic_id] not in ("divided", "merged")
            assert held == [self.transcript[r.seq - 1] for r in held]
            assert [r.seq for r in held] == sorted(r.seq for r in held)
            assert len(held) == self.topics[topic_id].count
        for round_ in group_rounds(self.transcript):
            assert len({where[i] for i in round_.ids}) == 1
        for message, first in self.went_to.items():
            home = self.topics[where[message]]
            if home.status == "open":
                assert home in find_successors(first, self.topics)
        for topic in self.topics.values():
            assert find_path(topic, self.topics)[-1] == topic


def _size(round_: Round) -> int:
    return sum(len(r.text) for r in round_.messages)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(acts)
def test_every_message_keeps_one_home(history: list[Act]) -> None:
    world = World()
    for act in history:
        before = world.states()
        world.act(act)
        world.check(before)
