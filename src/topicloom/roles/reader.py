"""The reader: it reads whole topics before every reply, and says what of them matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Protocol

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from topicloom.context.token_count import TokenCounter
from topicloom.context.transcript import TranscriptFormatter, shorten
from topicloom.context.windows import (
    PASSING,
    RESERVE,
    ChooseStart,
    PromptWindow,
    WindowStarts,
    cache_point,
    measure_each,
    topic_texts,
)
from topicloom.effects import Step
from topicloom.errors import UnusableAnswerError
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.chat import Chat, ChatRole
from topicloom.roles.markup import Element, find_elements, first_of, json_entries, lookups
from topicloom.roles.values import note_repairs, parse_message_ranges, parse_score, parse_topic_id
from topicloom.state.fence import fence_line
from topicloom.state.language import Language
from topicloom.state.recall import LEAST_SCORE, Quote, Reading
from topicloom.state.safe_text import clip
from topicloom.state.stored_message import StoredMessage, get_text
from topicloom.state.topics import Topic

_REPLY = 128
"""Tokens past which a reply or a tool's result in the conversation is shown in part. The user's own
words say whether a topic is needed."""
_CONVERSATION = 2_000
"""Tokens of the conversation that a reader is shown at most: what matters is at its end."""
_SUMMARY_LIMIT = 2_000
"""Characters of a summary."""
_MOST_PROPOSED = 8
"""Ids that are proposed to a reader."""
_FIELDS = (
    ("referenced_messages", "referenced_message_ids"),
    ("relevance_score", "score"),
    ("summary",),
)
_TAGS = ("topic_result", *chain.from_iterable(_FIELDS))


@dataclass(frozen=True, slots=True)
class TopicWindow:
    """The messages that are read of one topic."""

    topic: Topic
    messages: Sequence[StoredMessage]
    """Its messages, in order."""
    prior: float = 0.0
    """Relevance of the topic by the local index, 0 to 1."""
    whole: bool = True
    """False if these are only the messages that the index found in it."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Topics to read in one call: a large one, or several small ones."""

    session: str
    """The session, by which prompts of the same window are compared."""
    windows: Sequence[TopicWindow]
    """The topics, at least one."""
    tail: Sequence[StoredMessage]
    """The messages that are in no topic yet, the newest last."""
    query: str
    """The message to answer, with references resolved, or the query of a search."""
    language: Language
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weights of messages for the query by the local index, by short id, 0 to 1."""
    sought: str = ""
    """The query and the days that it is about, where the newest message does not say them."""

    @property
    def owners(self) -> dict[str, str]:
        """The topic of each message, by short ids, in the order in which they are shown."""
        return {m.id: w.topic.id for w in self.windows for m in w.messages}


class Reader(Role[ReadRequest, tuple[Reading, ...]], Protocol):
    """Reads topics; for each it answers with a score, ids worth quoting and a summary.

    A topic that it leaves out of its answer has nothing to do with the request.
    """


@dataclass(frozen=True, slots=True)
class ParsedReading:
    """A reader's answer on one topic as a model wrote it; ids may be made up."""

    score: float
    """0 to 1."""
    ranges: tuple[tuple[str, str], ...] = ()
    """First and last short id of what it names, in the order given; the same id for one message."""
    summary: str = ""
    topic: str = ""
    """Id of the topic; "" if it does not say."""


class ChatReader(ChatRole[ReadRequest, tuple[Reading, ...]]):
    """Reads topics by a chat model."""

    role = "reader"

    def __init__(self, chat: Chat) -> None:
        super().__init__(chat)
        self._starts = WindowStarts()

    @property
    def prompt_window(self) -> PromptWindow:
        """The window that its prompt has to fit; it limits the size of topics."""
        return self._chat.prompt_window

    def step(self, request: ReadRequest) -> Step[Answer[tuple[Reading, ...]]]:
        """Read the topics; an answer that names as many strangers as messages is none."""
        window = _name_window(request)
        by_schema = self._chat.server.holds_schema
        begin = partial(self._starts, (request.session, window))
        prompt = build_reader_prompt(request, self.prompt_window, begin, by_schema=by_schema)
        schema = make_reading_schema(request) if by_schema else None
        form = '{"topics": [...]}' if by_schema else "<topic_result>"
        parse = partial(_read_answer, request=request)
        answer = yield from self.ask(request, window, prompt, parse, form, schema)
        readings, remarks = answer.value
        return Answer(readings, remarks=(*answer.remarks, *remarks))


def _name_window(request: ReadRequest) -> str:
    """The name of a prompt's window: what is read together with other topics comes and goes."""
    first, *others = request.windows
    if not first.whole:
        return "reader:found"
    return "reader:together" if others else f"reader:{first.topic.id}"


def build_reader_prompt(
    request: ReadRequest, window: PromptWindow, begin: ChooseStart, *, by_schema: bool = False
) -> list[BaseMessage]:
    """The prompt by which topics are read: it changes only at its end from one turn to the next.

        system | each topic, a message a round | the names of the topics, and the messages that are
        in no topic yet, a message a message | what the index proposes, and what is looked for

    The last message of the topics is marked as a cache breakpoint. A tail message gets a prompt
    message of its own because a round of the tail is not finished: the reply would change it.

    Adding messages to the tail adds messages to the prompt and changes none, until the
    conversation has filled its room: what the topics leave, a quarter at least and half at most,
    and no more than `_CONVERSATION`.
    A topic that fits `topic_room` is shown whole, and it is divided where it does not; of a round
    that is larger by itself, a part is shown. Of the conversation, long replies are shown in part,
    and so are messages of more than a fifth of all room; the oldest is left out, much at a time, so
    that the prefix breaks once in many turns and not in each.

    Args:
        request: The topics, and the current conversation.
        window: What the prompt has to fit.
        begin: Decides how many leading messages of the tail are left out.
        by_schema: True if the server holds the answer to `make_reading_schema`; else it is tags.
    """
    counter, language, tail = window.counter, request.language, request.tail
    words = get_wording(language)
    system = SystemMessage(
        f"{window.prompts('reader', language)}\n\n"
        f"{window.prompts('reader_json' if by_schema else 'reader_tags', language)}"
    )
    room = window.limit - counter.message(system) - RESERVE
    texts = list[str]()
    for shown in request.windows:
        heading = words.topic_head if shown.whole else words.found_head
        first, *others = topic_texts(shown.messages, counter, language, window.topic_room()) or [""]
        texts += [f"{heading.format(id=shown.topic.id)}\n{first}", *others]
    read = [*map(HumanMessage, texts[:-1]), cache_point(texts[-1])]
    left = min(room // 2, _CONVERSATION, room - sum(map(counter.message, read)))
    # A name may change where the topic does not, so it stands behind all topics.
    listed = "\n".join(f"{w.topic.id}: {fence_line(w.topic.name)}" for w in request.windows)
    name = _label(words.these_topics, listed, counter, left // 4)
    last = _label(words.proposed, ", ".join(_propose(request)), counter, left // 4)
    last += _label(words.looking_for, fence_line(request.sought), counter, left // 4)
    left -= counter.text(name) + counter.text(last)
    formatter = TranscriptFormatter(counter, room // 5, language, min(_REPLY, room // 5))
    lines = formatter.format_messages(tail)
    before = hash((*map(get_text, [system, *read]), name))
    cut = begin(before, [r.seq for r in tail], measure_each(lines, counter), left)
    # The first is written again, so that it is dated. Without a notice: its count would change.
    current = [*formatter.format_messages(tail[cut : cut + 1]), *lines[cut + 1 :]]
    if current:
        current[0] = f"{name}{words.now}\n{current[0]}"
    passing = [HumanMessage(last, additional_kwargs={PASSING: True})] if last else []
    return [system, *read, *map(HumanMessage, current), *passing]


def _propose(request: ReadRequest) -> list[str]:
    """Ids that the index finds in topics that are read whole, the best first."""
    whole = {m.id for w in request.windows if w.whole for m in w.messages}
    found = sorted(whole & request.weights.keys(), key=lambda i: -request.weights[i])
    return found[:_MOST_PROPOSED]


def _label(label: str, text: str, counter: TokenCounter, room: int) -> str:
    """A line under its label, cut to some tokens; "" if there is nothing in it."""
    said = shorten(text, room, counter.text)
    return f"{label}\n{said}\n" if said else ""


def make_reading_schema(request: ReadRequest) -> dict[str, Any]:
    """A JSON schema of the readings, which can name no ids but those that are shown."""
    owners = request.owners
    fields = {
        "topic": {"type": "string", "enum": [w.topic.id for w in request.windows]},
        "referenced_messages": {
            "type": "array",
            "items": {"type": "string", "enum": list(owners)},
            "maxItems": len(owners),
        },
        "relevance_score": {"type": "number"},
        "summary": {"type": "string", "maxLength": _SUMMARY_LIMIT},
    }
    reading = {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
    readings = {"type": "array", "items": reading, "maxItems": len(request.windows)}
    return {
        "type": "object",
        "properties": {"topics": readings},
        "required": ["topics"],
        "additionalProperties": False,
    }


def parse_readings(text: str) -> tuple[ParsedReading, ...]:
    """A reader's scores, ids and summaries, by tags or in JSON.

    Raises:
        UnusableAnswerError: If there is no score.
    """
    return first_of(text, "relevance score", _readings_of_tags, _readings_of_json)


def _readings_of_tags(text: str) -> tuple[ParsedReading, ...] | None:
    found = []
    for element in [*find_elements(text, "topic_result")] or [Element({}, text)]:
        field_of = next(lookups(element.body, *_TAGS))
        fields = (field_of(*names) for names in _FIELDS)
        found.append((element.attributes.get("topic", ""), *fields))
    return _list_scored(found)


def _readings_of_json(text: str) -> tuple[ParsedReading, ...] | None:
    entries = json_entries(text, "topics")
    return _list_scored((e.field("topic"), *(e.field(*n) for n in _FIELDS)) for e in entries)


def _list_scored(fields: Iterable[Sequence[str]]) -> tuple[ParsedReading, ...] | None:
    found = []
    for topic, ids, score, summary in fields:
        share = parse_score(score)
        if share is not None:
            ranges = parse_message_ranges(ids)
            found.append(ParsedReading(share, ranges, summary, parse_topic_id(topic) or ""))
    return tuple(found) or None


def _read_answer(text: str, request: ReadRequest) -> tuple[tuple[Reading, ...], tuple[str, ...]]:
    """The readings in an answer, a topic each, and remarks on what of it was dropped.

    A range counts as what it holds of the topics that were read, if both of its ends are in them.
    A topic that is left out has nothing to do with the request.

    Raises `UnusableAnswerError` if at least half of what it names is nowhere in these.
    """
    owners, topics = request.owners, [w.topic.id for w in request.windows]
    place = {message: n for n, message in enumerate(owners)}
    shown, strangers, named = list(owners), list[str](), 0
    readings = dict[str, Reading]()
    for parsed in parse_readings(text):
        ids = list[str]()
        for first, last in parsed.ranges:
            named += 1
            if first in place and last in place and place[first] <= place[last]:
                ids += shown[place[first] : place[last] + 1]
            else:
                strangers.append(first if first == last else f"{first}-{last}")
        meant = [parsed.topic] if parsed.topic in topics else [owners[i] for i in ids[:1]]
        # Only one topic: no need to name it.
        for topic in meant or topics[: len(topics) == 1]:
            own = [i for i in dict.fromkeys(ids) if owners[i] == topic]
            readings[topic] = _make_reading(topic, parsed, own)
    if strangers and 2 * len(strangers) >= named:
        raise UnusableAnswerError(f"ids that were not shown: {', '.join(strangers[:5])}")
    remarks = note_repairs(strangers, "id is not in the topic", "ids are not in the topic")
    return tuple(readings.get(t) or Reading(topic=t, score=0.0) for t in topics), remarks


def _make_reading(topic: str, parsed: ParsedReading, ids: Sequence[str]) -> Reading:
    if parsed.score < LEAST_SCORE:
        return Reading(topic=topic, score=parsed.score)
    return Reading(
        topic=topic,
        score=parsed.score,
        quotes=tuple(Quote(id=i, weight=parsed.score) for i in ids),
        summary=clip(parsed.summary, _SUMMARY_LIMIT),
    )


class EmbeddedReader(LocalRole[ReadRequest, tuple[Reading, ...]]):
    """Scores topics and quotes their messages by what words and vectors find, without a model."""

    by_index: ClassVar[bool] = True
    """What it quotes is in the index: topics need not be active for it."""

    def call(self, request: ReadRequest) -> Answer[tuple[Reading, ...]]:
        """Read topics by the weights that came with the request."""
        readings = []
        for shown in request.windows:
            ids = (m.id for m in shown.messages if m.id in request.weights)
            weights = {i: request.weights[i] for i in ids}
            readings.append(Reading.by_weights(shown.topic.id, shown.prior, weights))
        return Answer(tuple(readings))


READER: RoleSpec[Reader] = RoleSpec(
    name="reader",
    purpose="reads active topics before a reply: a score, messages worth quoting, a summary",
    answer_tokens=1_500,
    answers=tuple,
    items=Reading,
    chat=ChatReader,
    embedded=lambda embedder: EmbeddedReader(),
)
