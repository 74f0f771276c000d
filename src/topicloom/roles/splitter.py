"""The splitter: it assigns the older messages to topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import ClassVar, Protocol

import numpy as np
from langchain_core.messages import BaseMessage
from numpy.typing import NDArray

from topicloom.context.transcript import TranscriptFormatter
from topicloom.context.windows import SMALLEST, PromptWindow, topic_listing
from topicloom.effects import Step
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.brief import BRIEF_LIMIT
from topicloom.roles.chat import ChatRole
from topicloom.roles.markup import Element, find_elements, first_of, json_entries
from topicloom.roles.values import (
    clip,
    note_repairs,
    parse_message_ids,
    parse_topic_id,
    parse_topic_ids,
)
from topicloom.search.embedder import Embedder
from topicloom.search.vectors import embed_rounds
from topicloom.state.fence import fence_line
from topicloom.state.grouping import LOOSE_ROUNDS, NEVER, Odds, link_groups
from topicloom.state.hierarchy import PATH_SEPARATOR
from topicloom.state.language import Language
from topicloom.state.rounds import Round
from topicloom.state.splitting import LOOSE_ENDS, Assignment
from topicloom.state.topics import Topic
from topicloom.topics.belonging import Affinities, rate_rounds
from topicloom.topics.naming import NAME_LIMIT, make_name, pair_rounds

_MOST_ASSIGNED = 10_000
"""Messages that one assignment may name."""
_MOST_REFERENCES = 4
"""Other topics that a message may belong to as well."""
_MOST_ASSIGNMENTS = 20_000
"""Assignments that are looked at."""
_SEGMENT_ODDS = 2.0
"""Log odds that a round goes on with the one before it, by their segments alone."""


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """Rounds to assign to topics."""

    session: str
    rounds: Sequence[Round]
    """The rounds, in order."""
    segments: Sequence[int]
    """For each round, the number of the adsorber's segment that it lies in."""
    topics: Sequence[Topic]
    """Open topics that a round may go to, under their full names (`House / Kitchen`)."""
    affinities: Affinities | None
    """Log odds that the rounds belong together and to the topics; None if they are not known."""
    active: frozenset[str]
    """Ids of those that are active."""
    previous: str | None
    """Id of the topic that the messages before the first round went to."""
    language: Language
    dividing: Topic | None = None
    """The topic that all of the rounds are of, when it is to be divided into sub-topics."""


class Splitter(Role[SplitRequest, tuple[Assignment, ...]], Protocol):
    """Assigns messages to existing or new topics."""


class ChatSplitter(ChatRole[SplitRequest, tuple[Assignment, ...]]):
    """Assigns the messages of rounds to topics."""

    role = "splitter"

    def step(self, request: SplitRequest) -> Step[Answer[tuple[Assignment, ...]]]:
        """Assign the messages; what names no message or topic of the request is dropped."""
        prompt = build_splitter_prompt(request, self._chat.prompt_window)
        answer = yield from self.ask(request, "splitter", prompt, parse_split, "<topic_split>")
        usable, repairs = _repair(request, answer.value)
        return Answer(usable, remarks=answer.remarks + repairs)


def build_splitter_prompt(request: SplitRequest, window: PromptWindow) -> list[BaseMessage]:
    """The prompt by which rounds are assigned to topics; the topics stand last.

    Every message is in it, long ones in part if need be: one that is not shown cannot be
    assigned.
    """
    counter, language, rounds = window.counter, request.language, request.rounds
    words = get_wording(language)
    asked = _format_dividing(request.dividing, language) if request.dividing else ""
    room = window.room("splitter", language, asked)
    whole = _format_parts(request, TranscriptFormatter(counter, window.limit // 8, language))
    if counter.text(whole) > room * 2 // 3:
        share = max(SMALLEST, room * 2 // 3 // sum(len(b.messages) for b in rounds))
        whole = _format_parts(request, TranscriptFormatter(counter, share, language))
    states = [words.active if t.id in request.active else words.dormant for t in request.topics]
    heads = [
        f"[{t.id}] ({state}) {fence_line(t.name)}"
        for t, state in zip(request.topics, states, strict=True)
    ]
    left = room - counter.text(whole)
    listed = topic_listing(heads, request.topics, counter, left) or words.nothing
    return window.messages("splitter", language, whole, f"{asked}{words.topics}\n{listed}")


def _format_dividing(topic: Topic, language: Language) -> str:
    brief = f": {fence_line(topic.brief)}" if topic.brief else ""
    return f"{get_wording(language).dividing}\n{fence_line(topic.name)}{brief}\n"


def _format_parts(request: SplitRequest, transcript: TranscriptFormatter) -> str:
    """Rounds under a line for each new segment, numbered from 1."""
    part = get_wording(transcript.language).part
    texts = transcript.format_rounds(request.rounds)
    lines: list[str] = []
    number, current = 0, None
    for text, segment in zip(texts, request.segments, strict=True):
        if segment != current:
            number, current = number + 1, segment
            lines.append(part.format(number=number))
        lines.append(text)
    return "\n".join(lines)


def parse_split(text: str) -> tuple[Assignment, ...]:
    """A splitter's assignments, one a message; raises `UnusableAnswerError` if there are none."""
    return first_of(
        text,
        "assignment",
        lambda answer: _collect(find_elements(answer, "assignment", "topic_split")),
        lambda answer: _collect(json_entries(answer, "assignments", "topic_split")),
    )


def _collect(found: Iterator[Element]) -> tuple[Assignment, ...] | None:
    assignments = chain.from_iterable(map(_assignments_of, found))
    return tuple(islice(assignments, _MOST_ASSIGNMENTS)) or None


def _assignments_of(element: Element) -> Iterator[Assignment]:
    kind = element.field("topic").lower()
    known = parse_topic_id(element.field("topic_id") or kind)
    name = element.field("topic_name", "name")
    if kind == "new":
        known, name = None, name or element.field("topic_id")
    if not (known or name):
        return
    brief = element.field("summary", "brief")
    also = parse_topic_ids(element.field("also", "also_in", "references"), _MOST_REFERENCES)
    ids = element.field("msg_id", "msg_ids", "message_id", "message_ids", "id")
    for message in parse_message_ids(ids, _MOST_ASSIGNED):
        yield Assignment(message, known, " ".join(name.split()), brief, also)


def _repair(
    request: SplitRequest, parsed: Sequence[Assignment]
) -> tuple[tuple[Assignment, ...], tuple[str, ...]]:
    """The assignments that can be followed, and a description of the rest."""
    known = [i for round_ in request.rounds for i in round_.ids]
    topics = {t.id for t in request.topics}
    named = _ids_by_name(request.topics)
    messages = set(known)
    usable = [
        resolved
        for a in parsed
        if a.message in messages and (resolved := _resolve(a, topics, named))
    ]
    covered = {a.message for a in usable}
    foreign = list(dict.fromkeys(a.message for a in parsed if a.message not in messages))
    unknown = list(dict.fromkeys(a.topic for a in parsed if a.topic and a.topic not in topics))
    others = list(dict.fromkeys(i for a in parsed for i in a.also if i not in topics))
    left = [i for i in known if i not in covered]
    return tuple(usable), (
        *note_repairs(foreign, "id was not to be assigned", "ids were not to be assigned"),
        *note_repairs(unknown, "topic does not exist", "topics do not exist"),
        *note_repairs(others, "reference is to no topic", "references are to no topics"),
        *note_repairs(left, "message is not assigned", "messages are not assigned"),
    )


def _ids_by_name(topics: Sequence[Topic]) -> dict[str, str]:
    """Ids by name; a sub-topic goes by its full name, and by its last part if no other does."""
    last = Counter(_last_name(t) for t in topics)
    ids = {_last_name(t): t.id for t in topics if last[_last_name(t)] == 1}
    return ids | {t.name.casefold(): t.id for t in topics}


def _last_name(topic: Topic) -> str:
    return topic.name.rpartition(PATH_SEPARATOR)[2].casefold()


def _resolve(assignment: Assignment, topics: set[str], named: dict[str, str]) -> Assignment | None:
    """An assignment to a topic that exists or has a name; "new" ones that exist are those."""
    also = tuple(i for i in assignment.also if i in topics)
    assignment = replace(assignment, brief=clip(assignment.brief, BRIEF_LIMIT), also=also)
    if assignment.topic in topics:
        return assignment
    name = clip(assignment.name, NAME_LIMIT)
    if not name:
        return None
    topic = named.get(name.casefold())
    return replace(assignment, topic=topic, name=name)


class EmbeddedSplitter(LocalRole[SplitRequest, tuple[Assignment, ...]]):
    """Groups the rounds, all at once, with one another and with the topics that there are.

    The first round goes on with the topic before it unless something parts them. What an arbiter
    separated is not joined for being alike. A group that stays small is a loose end.
    """

    by_index: ClassVar[bool] = True

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        """Assign every message of the request."""
        if not request.rounds:
            return Answer(())
        affinities = request.affinities or self._rate(request)
        runs, run_of = np.unique(affinities.run, return_inverse=True)
        topics = [t for t in request.topics if t.id in affinities.topics]
        sums = _add_topics(affinities, runs, [t.id for t in topics])
        before = next((i for i, t in enumerate(topics) if t.id == request.previous), None)
        _separate(sums, request.rounds, run_of, None if before is None else len(runs) + before)
        sizes = [1] * len(runs) + [affinities.sizes[t.id] for t in topics]
        groups = link_groups(sums, sizes, [False] * len(runs) + [True] * len(topics))
        assigned = {
            len(runs) + place: Assignment("", t.id, t.name) for place, t in enumerate(topics)
        }
        goes_on = affinities.goes_on if request.affinities else not request.rounds[0].opens
        if goes_on and request.previous is not None:
            assigned.setdefault(groups[int(run_of[0])], self._go_on(request))
        grouped = [(b, groups[run]) for b, run in zip(request.rounds, run_of.tolist(), strict=True)]
        for group in dict.fromkeys(group for _, group in grouped):
            if group not in assigned:
                held = [b for b, own in grouped if own == group]
                assigned[group] = self._open(request, held, {a.name for a in assigned.values()})
        return Answer(
            tuple(
                replace(assigned[group], message=message)
                for round_, group in grouped
                for message in round_.ids
            )
        )

    def _rate(self, request: SplitRequest) -> Affinities:
        labels = request.segments
        goes_on = [a == b for a, b in zip(labels, [None, *labels], strict=False)]
        odds = [_SEGMENT_ODDS if same else -_SEGMENT_ODDS for same in goes_on]
        return rate_rounds(request.rounds, odds, self._embedder)

    def _go_on(self, request: SplitRequest) -> Assignment:
        """The assignment of a group that goes on with what came before the first round."""
        known = {t.id: t.name for t in request.topics}
        assert request.previous is not None
        if request.previous in known:
            return Assignment("", request.previous, known[request.previous])
        return Assignment("", LOOSE_ENDS, LOOSE_ENDS)

    def _open(
        self, request: SplitRequest, held: Sequence[Round], taken: Collection[str]
    ) -> Assignment:
        """The assignment of a group that belongs to no topic there is."""
        if request.dividing is None and len(held) < LOOSE_ROUNDS:
            return Assignment("", LOOSE_ENDS, LOOSE_ENDS)
        name = name_rounds(
            held,
            self._embedder,
            others=[f"{t.name}\n{t.brief}" for t in request.topics],
            taken=[*taken, *(t.name for t in request.topics)],
            within=[request.dividing.name] if request.dividing else [],
        )
        return Assignment("", None, name)


def name_rounds(
    rounds: Sequence[Round],
    embedder: Embedder,
    *,
    others: Sequence[str] = (),
    taken: Collection[str] = (),
    within: Sequence[str] = (),
) -> str:
    """A name for a topic of some rounds; see `make_name`."""
    said = pair_rounds(m for b in rounds for m in b.messages)
    direction = embed_rounds(rounds, embedder).mean(axis=0)
    return make_name(said, direction, embedder, others=others, taken=taken, within=within)


def _add_topics(affinities: Affinities, runs: NDArray[np.intp], topics: Sequence[str]) -> Odds:
    """Summed log odds between runs and topics [r + t, r + t]; those between topics are 0."""
    count = len(runs)
    sums = np.zeros((count + len(topics), count + len(topics)))
    sums[:count, :count] = affinities.among[np.ix_(runs, runs)]
    for place, topic in enumerate(topics, start=count):
        sums[:count, place] = sums[place, :count] = (
            affinities.topics[topic][runs] * affinities.sizes[topic]
        )
    return sums


def _separate(
    sums: Odds, rounds: Sequence[Round], run_of: NDArray[np.intp], before: int | None
) -> None:
    """Keep apart, in place, what an arbiter separated; `before` is the topic before the rounds."""
    for place in range(len(rounds)):
        if _is_separated(rounds, place):
            left = before if place == 0 else int(run_of[place - 1])
            here = int(run_of[place])
            if left is not None and left != here:
                sums[here, left] = sums[left, here] = NEVER


def _is_separated(rounds: Sequence[Round], place: int) -> bool:
    """True if an arbiter says that a round has nothing to do with the one right before it."""
    after = place == 0 or rounds[place - 1].last == rounds[place].first - 1
    return after and rounds[place].ruling == "opens"


SPLITTER: RoleSpec[Splitter] = RoleSpec(
    name="splitter",
    purpose="assigns older messages to topics once the main window has filled",
    answer_tokens=4_000,
    answers=tuple,
    items=Assignment,
    model="strong",
    chat=ChatSplitter,
    embedded=EmbeddedSplitter,
)
