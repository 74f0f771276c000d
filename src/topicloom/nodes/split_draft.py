"""A split being made: rounds sorted and moved, topics opened, and divided where they outgrew."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from topicloom.effects import Step
from topicloom.nodes.deps import Deps
from topicloom.prompts.wording import get_wording
from topicloom.roles.calls import ask_role
from topicloom.roles.splitter import SPLITTER, SplitRequest
from topicloom.roles.waits import TurnWaits
from topicloom.state.dividing import divide_rounds
from topicloom.state.hierarchy import find_continuation, find_successors, strip_number
from topicloom.state.lifecycle import mark_divided
from topicloom.state.receipt import Call
from topicloom.state.references import (
    SIZE_DIVISOR,
    collect_references,
    distribute_references,
    own_room,
)
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.session import Session
from topicloom.state.splitting import (
    LOOSE_ENDS,
    Portion,
    cut_runs,
    group_assignments,
    merge_assignments,
)
from topicloom.state.topic_names import make_distinct
from topicloom.state.topics import Topic, TopicTable
from topicloom.storage.sessions import SessionStore
from topicloom.topics.naming import NAME_LIMIT

_GLANCE = 24
"""Tokens of a message by which a splitter is asked about it when a topic is divided; its prompt
shows this much of every message at least."""


@dataclass(slots=True)
class SplitDraft:
    """The work of one split: `put` appends ranges at once, the roster is written at its end."""

    deps: Deps
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
    calls: list[Call] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, Topic]:
        """All topics as they are by now."""
        return {**self.store.topic_table(self.session).topics, **self.rows}

    @property
    def rows(self) -> dict[str, Topic]:
        """Topics that are not as the roster has them."""
        return {**self.adjusted, **self.touched, **self.divided}

    def open(self, name: str, brief: str, parent: str | None = None) -> Topic:
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
        """The topic that loose ends go to."""
        known = [t for t in TopicTable(self.topics).loose() if not t.by_hand]
        if known:
            return max(known, key=lambda t: t.newest)
        words = get_wording(self.session.language)
        taken = [t.name for t in self.topics.values() if t.status in ("open", "archived")]
        name = make_distinct(words.loose_ends, taken, NAME_LIMIT)
        opened = self.open(name, words.about_loose_ends)
        return opened.model_copy(update={"loose": True})

    def put(self, topic: Topic, rounds: Sequence[Round]) -> Topic:
        """Put rounds into a topic."""
        tokens = topic.tokens + sum(map(self.tokens, rounds))
        messages = [m for round_ in rounds for m in round_.messages]
        self.session, topic = self.store.assign(self.session, topic, messages)
        topic = topic.model_copy(update={"tokens": tokens})
        self.adjusted.pop(topic.id, None)
        self.touched[topic.id] = topic
        return topic

    def move(self, portions: Iterable[Portion]) -> None:
        """Give each portion to its topic, and references to it to others."""
        for portion in portions:
            self._refer(portion, self.give(self._choose_topic(portion), portion.rounds))

    def give(self, topic: Topic, rounds: Sequence[Round]) -> Topic:
        """Put rounds of the tail into a topic."""
        topic = self.put(topic, rounds)
        self.moved.setdefault(topic.id, []).extend(rounds)
        return topic

    @property
    def waits(self) -> TurnWaits:
        """What the turn has waited for."""
        return self.deps.waits.of(self.session.id)

    @property
    def chunk_tokens(self) -> int:
        """Tokens that one call of the splitter is given."""
        return self.deps.window.size // 2

    def before(self, first: int) -> str | None:
        """The open topic that goes on with what the round before a message went to."""
        ranges = self.store.ranges(self.session)
        owner = ranges.topic_of(min(first - 1, ranges.last))
        topic = find_continuation(owner, self.topics)
        return topic.id if topic else None

    def sort(self, request: SplitRequest) -> Step[list[Portion]]:
        """Ask the splitter; ask once more for what it left out; then the stand-in decides.

        One that was late is not asked again. Should even that fail, rounds stay with the ones
        before them.
        """
        roles = self.deps.roles
        known: set[str] = {t.id for t in request.topics}
        known |= set() if request.dividing else {LOOSE_ENDS}
        place = {b.first: i for i, b in enumerate(request.rounds)}
        portions: list[Portion] = []
        left = list(request.rounds)
        for splitter in (roles[SPLITTER], *roles.in_turn(SPLITTER)):
            if not left:
                break
            places = [place[b.first] for b in left]
            asked = replace(
                request,
                rounds=left,
                segments=[request.segments[i] for i in places],
                affinities=request.affinities and request.affinities.of_rounds(places),
                previous=_find_before(request, portions, left[0]).topic,
            )
            answer, call = yield from ask_role("splitter", splitter, asked, waits=self.waits)
            self.calls.append(call)
            found, left = group_assignments(left, answer or (), known)
            portions += found
        if left:  # no splitter sorts them, but nothing may be lost
            before = _find_before(request, portions, left[0])
            portions.append(replace(before, rounds=tuple(left)))
        return merge_assignments(portions)

    def divide_large(self) -> Step[list[str]]:
        """Divide every topic that is too large, until all fit; returns the divisions, in words.

        A round that is too large by itself is a topic of its own, and stays one.
        """
        events: list[str] = []
        for topic in self._find_large():
            rounds = group_rounds(self.store.topic_messages(self.session, topic))
            if len(rounds) > 1:
                parts = yield from self._divide(topic, rounds)
                names = ", ".join(f"{t.id} “{t.name}”" for t in parts)
                events.append(f"divided {topic.id} “{topic.name}” into {names}")
        return events

    def _find_large(self) -> list[Topic]:
        """The open topics that have more than they may: of this split, or of another reader's.

        What was counted for another reader is counted anew, where twice as much, and a label for
        each message, would not fit.
        """
        for topic in [t for t in self.topics.values() if t.status == "open"]:
            if topic.room != self.limit and 2 * (topic.tokens + 16 * topic.count) > self.limit:
                held = group_rounds(self.store.topic_messages(self.session, topic))
                counted = {"tokens": sum(map(self.tokens, held)), "room": self.limit}
                rows = self.touched if topic.id in self.touched else self.adjusted
                rows[topic.id] = topic.model_copy(update=counted)
        changed = (*self.adjusted.values(), *self.touched.values())
        return [t for t in changed if t.tokens > self._own_room(t)]

    def _own_room(self, topic: Topic) -> int:
        return own_room(self.limit, self.store.ranges(self.session).references(topic.id))

    def _divide(self, topic: Topic, rounds: Sequence[Round]) -> Step[list[Topic]]:
        """Divide one topic, and parts of it that are still too large; returns those that fit."""
        limit = self._own_room(topic)
        queue = deque([(topic, tuple(rounds))])
        done: dict[str, tuple[Round, ...]] = {}
        while queue:
            whole, held = queue.popleft()
            fits = whole is not topic and sum(map(self.tokens, held)) <= limit
            if len(held) == 1 or fits:
                self.put(whole, held)
                done[whole.id] = held
                continue
            proposed = yield from self._propose_parts(whole, held)
            taken = {t.name for t in self.topics.values()}
            parts = divide_rounds(whole.name, held, proposed, self.tokens, limit, taken)
            self._empty(whole)
            for part in parts:
                child = self.open(part.name, part.brief, parent=whole.id)
                queue.append((child, part.rounds))
        self._hand_down(topic, done)
        return [self.touched[i] for i in done]

    def _propose_parts(self, topic: Topic, rounds: Sequence[Round]) -> Step[list[Portion]]:
        """The parts that the splitter proposes; it is shown those that it has named before."""
        labels = self.deps.adsorber.segments(rounds)
        named: list[Topic] = []
        portions: list[Portion] = []
        glances = [min(_GLANCE * len(b.messages), self.tokens(b)) for b in rounds]
        for start, stop in cut_runs(glances, self.chunk_tokens):
            request = SplitRequest(
                session=self.session.id,
                rounds=rounds[start:stop],
                segments=labels[start:stop],
                topics=named,
                affinities=None,
                active=frozenset(t.id for t in named),
                previous=None,
                language=self.session.language,
                dividing=topic,
            )
            names = {t.id: t.name for t in named}
            for portion in (yield from self.sort(request)):
                name = names[portion.topic] if portion.topic else portion.name
                portions.append(Portion(None, name, portion.brief, portion.rounds))
            portions = merge_assignments(portions)
            # As a later request shows a part; it has no id of the session's yet.
            named = [
                Topic(id=f"t{n}", name=p.name, brief=p.brief) for n, p in enumerate(portions, 1)
            ]
        return portions

    def _empty(self, topic: Topic) -> None:
        """Take a topic's messages from it; they are its parts' from now on."""
        self.divided[topic.id] = mark_divided(topic, {*self.session.active, *self.touched})
        self.touched.pop(topic.id, None)
        self.adjusted.pop(topic.id, None)

    def _hand_down(self, topic: Topic, parts: dict[str, tuple[Round, ...]]) -> None:
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
        return self.open(portion.name, portion.brief, ids[0] if ids else None)

    def _refer(self, portion: Portion, owner: Topic) -> None:
        small = [b for b in portion.rounds if self.tokens(b) * SIZE_DIVISOR <= self.limit]
        for other, found in collect_references(portion, owner.id, small).items():
            self.session = self.store.refer(self.session, self.topics[other], found)
            if other not in self.touched:
                self.adjusted[other] = self.topics[other]

    def heirs(self, topic_id: str) -> list[str]:
        """Ids of the open topics that a topic was divided into."""
        return [t.id for t in find_successors(topic_id, self.topics)]


def remember_sizes(measure: Callable[[Round], int]) -> Callable[[Round], int]:
    """Tells the tokens of rounds, each measured once: of a very long one that takes time."""
    known: dict[tuple[int, int], int] = {}

    def size(round_: Round) -> int:
        key = round_.first, round_.last
        if key not in known:
            known[key] = measure(round_)
        return known[key]

    return size


def _find_before(request: SplitRequest, portions: Sequence[Portion], round_: Round) -> Portion:
    """The portion of the round before a round, without its rounds; else a new one for it."""
    for portion in portions:
        if any(b.last == round_.first - 1 for b in portion.rounds):
            return replace(portion, rounds=(), also={})
    name = round_.text.strip()[:40] or "…"
    return Portion(request.previous, name, "", ())
