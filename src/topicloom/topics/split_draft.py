"""A split being made: rounds sorted and moved, topics opened, and divided where they outgrew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from topicloom.prompts.wording import get_wording
from topicloom.state.activation import (
    INITIAL_RELEVANCE,
    ActivationChange,
    ActivationPolicy,
    activate_candidates,
    transfer_activation,
)
from topicloom.state.hierarchy import find_continuation, find_successors, strip_number
from topicloom.state.language import LanguageChoice, choose_language
from topicloom.state.lifecycle import mark_active, mark_divided
from topicloom.state.references import (
    SIZE_DIVISOR,
    collect_references,
    distribute_references,
    own_room,
)
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.session import Session
from topicloom.state.splitting import LOOSE_ENDS, Portion, SplitPlan
from topicloom.state.topic_names import find_owner, make_distinct
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.sessions import SessionStore
from topicloom.topics.naming import NAME_LIMIT


@dataclass(slots=True)
class SplitDraft:
    """The work of one split: `put` appends ranges at once, the roster is written at its end."""

    store: SessionStore
    session: Session
    tokens: Callable[[Round], int]
    """Tokens of a round as the reader of its topic is shown it."""
    limit: int
    """Tokens that a topic may have."""
    touched: dict[str, Topic] = field(default_factory=dict)
    """Topics that were given messages, by id."""
    divided: dict[str, Topic] = field(default_factory=dict)
    """Topics that were divided, by id."""
    adjusted: dict[str, Topic] = field(default_factory=dict)
    """Topics that only got references, or whose tokens were counted again, by id."""
    moved: dict[str, list[Round]] = field(default_factory=dict)
    """Rounds of the tail, by the topic that they went to."""

    @property
    def topics(self) -> dict[str, Topic]:
        return {**self.store.topic_table(self.session).topics, **self.rows}

    @property
    def table(self) -> TopicTable:
        return TopicTable(self.topics)

    @property
    def rows(self) -> dict[str, Topic]:
        """Topics that are not as the roster has them."""
        return {**self.adjusted, **self.touched, **self.divided}

    def create(self, name: str, brief: str, parent: str | None = None) -> Topic:
        """A new topic; its id follows from the session, so a step run again gives it again."""
        number = self.session.topics + 1
        self.session = self.session.model_copy(update={"topics": number})
        whole = self.topics[parent] if parent is not None else None
        pinned = whole is not None and "pinned" in whole.by_hand
        return Topic(
            id=f"t{number}",
            name=name,
            brief=brief,
            parent=parent,
            room=self.limit,
            loose=whole is not None and whole.loose,
            by_hand=("pinned",) if pinned else (),
        )

    def loose_ends(self) -> Topic:
        """The topic of what makes no topic: the newest that no hand touched, or a new one."""
        known = [t for t in self.table.loose() if not t.by_hand]
        if known:
            return max(known, key=lambda t: t.newest)
        words = get_wording(self.session.language)
        taken = [t.name for t in self.topics.values() if t.status in ("open", "archived")]
        name = make_distinct(words.loose_ends, taken, NAME_LIMIT)
        created = self.create(name, words.about_loose_ends)
        return created.model_copy(update={"loose": True})

    def put(self, topic: Topic, rounds: Sequence[Round], *, fresh: bool = False) -> Topic:
        """Write that a topic has some rounds; `fresh` ones were in no topic before."""
        tokens = topic.tokens + sum(map(self.tokens, rounds))
        messages = [m for round_ in rounds for m in round_.messages]
        self.session, topic = self.store.assign(self.session, topic, messages)
        topic = topic.model_copy(update={"tokens": tokens})
        self.adjusted.pop(topic.id, None)
        self.touched[topic.id] = topic
        if fresh:
            self.moved.setdefault(topic.id, []).extend(rounds)
        return topic

    def move(self, portions: Iterable[Portion]) -> None:
        """Give each portion to its topic, and references to it to others, which may be new too."""
        given = [(p, self.put(self._choose_topic(p), p.rounds, fresh=True)) for p in portions]
        named = {portion.name: owner.id for portion, owner in given}
        for portion, owner in given:
            self._refer(portion, owner, named)

    def before(self, first: int) -> str | None:
        """The open topic that goes on with what the round before a message went to."""
        ranges = self.store.ranges(self.session)
        owner = ranges.topic_of(min(first - 1, ranges.last))
        topic = find_continuation(owner, self.topics)
        return topic.id if topic else None

    def find_large(self) -> list[Topic]:
        """The open topics that have more than they may, of those that the split changed or counted.

        It counts anew what was merged or counted for another reader, where twice as much, and a
        label for each message, would not fit.
        """
        for topic in [t for t in self.topics.values() if t.status == "open"]:
            if topic.room != self.limit and 2 * (topic.tokens + 16 * topic.count) > self.limit:
                held = group_rounds(self.store.topic_messages(self.session, topic))
                counted = {"tokens": sum(map(self.tokens, held)), "room": self.limit}
                rows = self.touched if topic.id in self.touched else self.adjusted
                rows[topic.id] = topic.model_copy(update=counted)
        changed = (*self.adjusted.values(), *self.touched.values())
        return [t for t in changed if t.tokens > self.own_room(t)]

    def own_room(self, topic: Topic) -> int:
        """Tokens that a topic may have beside what it refers to."""
        return own_room(self.limit, self.store.ranges(self.session).references(topic.id))

    def divide(self, topic: Topic) -> None:
        """Mark a topic as divided; its parts are given its messages by `put` and `hand_down`."""
        self.divided[topic.id] = mark_divided(topic, {*self.session.active, *self.touched})
        self.touched.pop(topic.id, None)
        self.adjusted.pop(topic.id, None)

    def hand_down(self, topic: Topic, parts: dict[str, tuple[Round, ...]]) -> None:
        """Give a divided topic's references and its rounds of this split to its parts."""
        references = self.store.ranges(self.session).references(topic.id)
        for part, found in distribute_references(references, parts).items():
            self.session = self.store.refer(self.session, self.touched[part], found)
        # What is out of view goes with the rest.
        self.session = self.store.hand_over(self.session, topic, self.touched[next(iter(parts))])
        tail = {b.first for b in self.moved.pop(topic.id, ())}
        for part, rounds in parts.items():
            fresh = [b for b in rounds if b.first in tail]
            if fresh:
                self.moved[part] = fresh

    def _choose_topic(self, portion: Portion) -> Topic:
        """The topic that a portion goes to.

        The name of a divided topic means the topic that continues it.
        """
        if portion.topic == LOOSE_ENDS:
            return self.loose_ends()
        if portion.topic is not None:
            return self.topics[portion.topic]
        named = {t.name: t for t in self.touched.values()}
        if portion.name in named:
            return named[portion.name]
        former = [t for t in self.topics.values() if t.status == "divided"]
        ids = [t.id for t in former if strip_number(t.name) == portion.name]
        found = [t for i in ids if (t := find_continuation(i, self.topics)) is not None]
        if found:
            return max(found, key=lambda t: t.newest)
        return self.create(portion.name, portion.brief, ids[0] if ids else None)

    def _refer(self, portion: Portion, owner: Topic, named: Mapping[str, str]) -> None:
        small = [b for b in portion.rounds if self.tokens(b) * SIZE_DIVISOR <= self.limit]
        ids = {**named, **{t.id: t.id for t in self.table.open()}}
        for other, found in collect_references(portion, owner.id, small, ids).items():
            self.session = self.store.refer(self.session, self.topics[other], found)
            if other not in self.touched:
                self.adjusted[other] = self.topics[other]

    def save(self) -> Session:
        """The session with the rows that are not as the roster has them."""
        self.session = self.store.save_topics(self.session, list(self.rows.values()))
        return self.session

    def describe(self, topic: Topic, name: str, brief: str) -> None:
        """Give a topic a brief, and the name that goes with it unless another open topic has it."""
        others = [*self.table.open(), *self.table.loose()]
        kept = topic.name if not name or find_owner(name, others, [topic.id]) else name
        self.touched[topic.id] = topic.described(kept, brief)

    def select_open(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Those of some topics that are open, and no loose ends."""
        readable = {t.id for t in self.table.open()}
        return tuple(i for i in ids if i in readable)

    def read_tail(self, last: int) -> list[Round]:
        """The rounds of the tail up to a message: those that the split moves."""
        return group_rounds(self.store.messages(self.session, self.session.tail, last))

    def close(
        self,
        rounds: Sequence[Round],
        plan: SplitPlan,
        policy: ActivationPolicy,
        language: LanguageChoice,
    ) -> tuple[ActivationChange, str]:
        """End the split of some rounds; returns what becomes active, and what was done, in words.

        The topics that they moved into become active, as far as there is room.
        """
        done, spoken = "dropped the recall notes to make room", self.session.language
        if rounds:
            names = ", ".join(t.label for t in self.touched.values())
            done = f"split m{rounds[0].first}-m{rounds[-1].last} into {names}"
            spoken = choose_language(language, [one.text for one in rounds[-20:]])
        active: Mapping[str, Sequence[float]] = self.session.active
        for topic_id in self.divided:
            heirs = [t.id for t in find_successors(topic_id, self.topics)]
            active = transfer_activation(active, topic_id, heirs)
        table = self.table
        moved = dict.fromkeys(self.select_open(self.moved), INITIAL_RELEVANCE)
        result = activate_candidates(active, moved, policy, table.pinned())
        for topic_id in result.activated:
            mark_active(table[topic_id], active)
        self.session = self.save().model_copy(
            update={
                "language": spoken,
                "tail": plan.tail,
                "view": plan.view,
                "ledger": None,
                "ledger_tokens": 0,
                "active": result.active,
            }
        )
        return result, done
