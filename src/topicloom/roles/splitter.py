"""The splitter: it assigns the older messages to topics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice
from math import inf
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
from topicloom.roles.values import note_repairs, parse_message_ids, parse_topic_id, parse_topic_ids
from topicloom.search.embedder import Embedder
from topicloom.state.fence import fence_line
from topicloom.state.folding import fold
from topicloom.state.grouping import LOOSE_ROUNDS, NEVER, Odds, link_groups
from topicloom.state.hierarchy import PATH_SEPARATOR
from topicloom.state.language import Language
from topicloom.state.rounds import Round
from topicloom.state.safe_text import clip
from topicloom.state.splitting import LOOSE_ENDS, Assignment
from topicloom.state.topics import Topic
from topicloom.topics.belonging import Affinities, rate_rounds
from topicloom.topics.naming import NAME_LIMIT, make_name, pair_rounds

_MOST_ASSIGNED = 20_000
"""Messages that an answer may assign."""
_MOST_REFERENCES = 4
"""Other topics that a message may belong to as well."""
_KINDS = {"existing_active", "existing_inactive", "new", "small_talk"}
"""Values of `topic` that name no topic by themselves."""


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """Rounds to assign to topics."""

    session: str
    rounds: Sequence[Round]
    """The rounds, in order."""
    continues: Sequence[float]
    """For each round, the adsorber's log odds that it goes on with the one before it."""
    topics: Sequence[Topic]
    """Open topics that a round may go to, under their full names (`House / Kitchen`). First come
    those that earlier answers of the same split open, under ids that hold for this request; last,
    what is left out if there is no room.
    """
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

    @property
    def prompt_window(self) -> PromptWindow:
        """The window that messages to sort are shown in."""
        return self._chat.prompt_window

    def step(self, request: SplitRequest) -> Step[Answer[tuple[Assignment, ...]]]:
        """Assign the messages; what names no message or topic of the request is dropped."""
        prompt = build_splitter_prompt(request, self._chat.prompt_window)
        answer = yield from self.ask(request, "splitter", prompt, parse_split, "<topic_split>")
        usable, repairs = _repair(request, answer.value)
        return Answer(usable, remarks=answer.remarks + repairs)


def messages_room(window: PromptWindow, language: Language, *texts: str) -> int:
    """Tokens that messages to sort may have in a prompt; the rest is for topics and `texts`.

    Where the instructions fill the window, they have half of it.
    """
    return max(window.room("splitter", language, *texts) * 2 // 3, window.limit // 2)


def build_splitter_prompt(request: SplitRequest, window: PromptWindow) -> list[BaseMessage]:
    """The prompt by which rounds are assigned to topics; the topics stand last.

    Every message is in it, whole if all of them fit, else the longest ones in part: one that is
    not shown cannot be assigned.
    """
    counter, language = window.counter, request.language
    words = get_wording(language)
    asked = _format_dividing(request.dividing, language) if request.dividing else ""
    room = messages_room(window, language, asked)
    said = _format_rounds(request, TranscriptFormatter(counter, inf, language))
    if (over := counter.text(said) - room) > 0:
        sizes = [counter.text(m.text) for b in request.rounds for m in b.messages]
        cap = max(SMALLEST, find_cap(sizes, sum(sizes) - over))
        said = _format_rounds(request, TranscriptFormatter(counter, cap, language))
    states = [words.active if t.id in request.active else words.dormant for t in request.topics]
    heads = [
        f"[{t.id}] ({state}) {fence_line(t.name)}"
        for t, state in zip(request.topics, states, strict=True)
    ]
    left = window.room("splitter", language, asked) - counter.text(said)
    fit = sum(size <= left for size in accumulate(counter.text(h) + 4 for h in heads))
    listed = topic_listing(heads[:fit], request.topics[:fit], counter, left) or words.nothing
    return window.messages("splitter", language, said, f"{asked}{words.topics}\n{listed}")


def find_cap(sizes: Sequence[int], room: int) -> int:
    """The largest cap by which some sizes come to no more than the room."""
    for place, size in enumerate(ordered := sorted(sizes)):
        cap = room // (len(ordered) - place)
        if size > cap:
            return cap
        room -= size
    return max(sizes, default=0)


def _format_dividing(topic: Topic, language: Language) -> str:
    brief = f": {fence_line(topic.brief)}" if topic.brief else ""
    return f"{get_wording(language).dividing}\n{fence_line(topic.name)}{brief}\n"


def _format_rounds(request: SplitRequest, transcript: TranscriptFormatter) -> str:
    """Rounds, with a line before those with which a topic begins by an arbiter's word."""
    boundary = get_wording(transcript.language).boundary
    texts = transcript.format_rounds(request.rounds)
    return "\n".join(
        f"{boundary}\n{text}" if round_.ruling == "opens" else text
        for text, round_ in zip(texts, request.rounds, strict=True)
    )


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
    return tuple(islice(assignments, _MOST_ASSIGNED)) or None


def _assignments_of(element: Element) -> Iterator[Assignment]:
    where, named = element.field("topic"), element.field("topic_id")
    kind = re.sub(r"[\s-]", "_", where.lower())
    known, name = parse_topic_id(named), element.field("topic_name", "name")
    if kind == "small_talk":
        known = LOOSE_ENDS
    elif kind == "new":
        known = None
    elif kind not in _KINDS and not named:
        named, known = where, parse_topic_id(where)
    name = name or ("" if known else named)  # some models write the name where an id was meant
    if not (known or name):
        return
    brief = element.field("summary", "brief")
    also = _parse_also(element.field("also", "also_in", "references"))
    ids = element.field("msg_id", "msg_ids", "message_id", "message_ids", "id")
    for message in parse_message_ids(ids, _MOST_ASSIGNED):
        yield Assignment(message, known, " ".join(name.split()), brief, also)


def _parse_also(text: str) -> tuple[str, ...]:
    """Ids of topics, and names of those that have none yet."""
    found: list[str] = []
    for part in re.split(r"[,;，；、\n]", text):
        name = " ".join(part.split())
        found += parse_topic_ids(part, _MOST_REFERENCES) or ([name] if name else [])
    return tuple(dict.fromkeys(found))[:_MOST_REFERENCES]


def _repair(
    request: SplitRequest, parsed: Sequence[Assignment]
) -> tuple[tuple[Assignment, ...], tuple[str, ...]]:
    """The assignments that can be followed, and a description of the rest."""
    ids = [i for round_ in request.rounds for i in round_.ids]
    known = {t.id for t in request.topics} | (set() if request.dividing else {LOOSE_ENDS})
    named = _ids_by_name(request.topics)
    resolved = [a for one in parsed if (a := _resolve(one, known, named))]
    opened = {fold(a.name): a.name for a in resolved if a.topic is None}
    places = {i: i for i in known} | opened | named
    messages = set(ids)
    usable = tuple(
        replace(a, also=tuple(places[k] for i in a.also if (k := fold(i)) in places))
        for a in resolved
        if a.message in messages
    )
    covered = {a.message for a in usable}
    foreign = list(dict.fromkeys(a.message for a in parsed if a.message not in messages))
    unknown = list(dict.fromkeys(a.topic for a in parsed if a.topic and a.topic not in known))
    others = list(dict.fromkeys(i for a in parsed for i in a.also if fold(i) not in places))
    left = [i for i in ids if i not in covered]
    return usable, (
        *note_repairs(foreign, "id was not to be assigned", "ids were not to be assigned"),
        *note_repairs(unknown, "topic does not exist", "topics do not exist"),
        *note_repairs(others, "reference is to no topic", "references are to no topics"),
        *note_repairs(left, "message is not assigned", "messages are not assigned"),
    )


def _ids_by_name(topics: Sequence[Topic]) -> dict[str, str]:
    """Ids by name; a sub-topic goes by its full name, and by its last part if no other does."""
    last = Counter(_last_name(t) for t in topics)
    ids = {_last_name(t): t.id for t in topics if last[_last_name(t)] == 1}
    return ids | {fold(t.name): t.id for t in topics}


def _last_name(topic: Topic) -> str:
    return fold(topic.name.rpartition(PATH_SEPARATOR)[2])


def _resolve(assignment: Assignment, known: set[str], named: dict[str, str]) -> Assignment | None:
    """An assignment to a topic that exists or has a name; "new" ones that exist are those."""
    assignment = replace(assignment, brief=clip(assignment.brief, BRIEF_LIMIT))
    if assignment.topic in known:
        return assignment
    name = clip(assignment.name, NAME_LIMIT)
    return replace(assignment, topic=named.get(fold(name)), name=name) if name else None


class EmbeddedSplitter(LocalRole[SplitRequest, tuple[Assignment, ...]]):
    """Groups the rounds, all at once, with one another and with the topics that there are.

    The first round goes on with the topic before it unless something parts them. What an arbiter
    separated is not joined for being alike. A group that stays small is a loose end.
    """

    by_index: ClassVar[bool] = True

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        if not request.rounds:
            return Answer(())
        affinities = request.affinities or rate_rounds(
            request.rounds, request.continues, self._embedder
        )
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
    return make_name(said, embedder, others=others, taken=taken, within=within)


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
    answers=tuple,
    items=Assignment,
    model="strong",
    chat=ChatSplitter,
    embedded=EmbeddedSplitter,
)
