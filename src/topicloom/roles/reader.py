"""The reader: it reads a topic's whole window before every reply."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import date
from functools import partial
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
    measure_each,
    topic_messages,
)
from topicloom.effects import Step
from topicloom.errors import UnusableAnswerError
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.chat import Chat, ChatRole
from topicloom.roles.markup import find_elements, first_of, lookups
from topicloom.roles.values import clip, note_repairs, parse_message_ids, parse_score
from topicloom.state.fence import fence_line
from topicloom.state.language import Language
from topicloom.state.recall import Quote, Reading
from topicloom.state.stored_message import StoredMessage, get_text, parse_iso_seconds
from topicloom.state.topics import Topic

_REPLY = 128
"""Tokens past which a reply or a tool's result in the conversation is shown in part. The user's own
words say whether a topic is needed."""
_CONVERSATION = 4_000
"""Tokens of the conversation that a reader is shown at most: what matters is at its end."""
_LEAST_SCORE = 0.3
"""Score under which a topic contributes nothing."""
_SUMMARY_LIMIT = 2_000
"""Characters of a summary."""
_DECAY = 0.02
"""By how much each further quote weighs less; the last ones half as much as the first."""
_MOST_QUOTES = 24
"""Ids that a schema admits, unless `_EVERYTHING` of a topic are more."""
_MOST_NAMED = 10_000
"""Ids of an answer that are looked at, those of ranges among them."""
_TAGS = ("relevance_score", "referenced_messages", "summary", "topic_result")
_NAMED = re.compile(r"\d+(?:[.,:/-]\d+)*|(?<=[a-z0-9,;'’)] )[A-Z][A-Za-z'’-]+")
"""Numbers, and words that are capitalised within a sentence."""
_LABELLED_SCORE = re.compile(r"relevance[_ ]?score\W{1,10}([0-9０-９.．eE+-]{1,20})", re.I)
_EVERYTHING = 0.75
"""Share of a topic's messages from which a reader's list of ids is no choice any more."""
_ALL_OF_IT = 100
"""Tokens up to which a topic, such as two short rounds, may well be quoted as a whole."""
_LEAST_WEIGHT = 0.4
"""Share of the best message's weight from which others are quoted without a model: somewhat more
than fits the budget, which decides."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One topic window to read."""

    session: str
    """The session, by which prompts of the same window are compared."""
    topic: Topic
    messages: Sequence[StoredMessage]
    """All of its messages, in order."""
    tail: Sequence[StoredMessage]
    """The messages in view of the main window and some before them, the newest last."""
    query: str
    """The message to answer, with references resolved, or the query of a search."""
    language: Language
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weights of messages for the query by the local index, by short id, 0 to 1."""
    prior: float = 0.0
    """Relevance of the topic by the local index, 0 to 1."""
    sought: str = ""
    """The query and the days that it is about, where the newest message does not say them."""


class Reader(Role[ReadRequest, Reading], Protocol):
    """Reads a whole topic and answers with a score, ids worth quoting and a summary."""


@dataclass(frozen=True, slots=True)
class ParsedReading:
    """A reader's answer as a model wrote it; ids may be made up."""

    score: float
    """0 to 1."""
    ids: tuple[str, ...] = ()
    """Short ids of messages, each once, in the order given."""
    summary: str = ""


class ChatReader(ChatRole[ReadRequest, Reading]):
    """Reads a topic window by a chat model."""

    role = "reader"

    def __init__(self, chat: Chat) -> None:
        super().__init__(chat)
        self._starts = WindowStarts()

    @property
    def prompt_window(self) -> PromptWindow:
        """The window that its prompt has to fit; it limits the size of topics."""
        return self._chat.prompt_window

    def step(self, request: ReadRequest) -> Step[Answer[Reading]]:
        """Read the topic; ids that are not in it are dropped, if others are."""
        topic = request.topic.id
        begin = partial(self._starts, (request.session, topic))
        prompt = build_reader_prompt(request, self.prompt_window, begin)
        window = f"reader:{topic}"
        known = {m.id for m in request.messages}
        parse = partial(_parse_reading_of, known=known)
        schema = make_reading_schema(known)
        answer = yield from self.ask(request, window, prompt, parse, "<topic_result>", schema)
        unknown = [i for i in answer.value.ids if i not in known]
        ids = [i for i in answer.value.ids if i in known]
        repairs = note_repairs(unknown, "id is not in the topic", "ids are not in the topic")
        summary, refusal = _check_summary(answer.value.summary, ids, request)
        reading = _make_reading(topic, answer.value.score, ids, summary)
        size = sum(self.prompt_window.counter.text(m.text) for m in request.messages)
        if size > _ALL_OF_IT and 1 < len(known) <= len(ids) / _EVERYTHING:
            # Its score says as little: the topic counts as the index finds it.
            least = min(reading.score, request.prior)
            reading = reading.model_copy(update={"selective": False, "score": least})
            repairs = (*repairs, "names nearly everything")
        return Answer(reading, remarks=(*answer.remarks, *repairs, *refusal))


def build_reader_prompt(
    request: ReadRequest, window: PromptWindow, begin: ChooseStart
) -> list[BaseMessage]:
    """The prompt by which a topic is read: it changes only at its end from one turn to the next.

        system | the topic, a message a round | its name and brief, and the conversation now, a
        message a message | in some turns, what is looked for

    The topic's last message is marked as a cache breakpoint. A tail message gets a prompt message
    of its own because a round of the tail is not finished: the reply would change it.

    Adding messages to the tail adds messages to the prompt and changes none, until the
    conversation has filled its room: what the topic leaves, a quarter at least and half at most,
    and no more than `_CONVERSATION`.
    A topic that fits `topic_room` is shown whole, and it is divided where it does not; of a round
    that is larger by itself, a part is shown. Of the conversation, long replies are shown in part,
    and so are messages of more than a fifth of all room; the oldest is left out, much at a time, so
    that the prefix breaks once in many turns and not in each.

    Args:
        request: The topic, and the current conversation.
        window: What the prompt has to fit.
        begin: Decides how many leading messages of the tail are left out.
    """
    counter, language, tail = window.counter, request.language, request.tail
    topic, words = request.topic, get_wording(language)
    system = SystemMessage(window.prompts("reader", language))
    room = window.limit - counter.message(system) - RESERVE
    read = topic_messages(request.messages, counter, language, window.topic_room())
    left = min(room // 2, _CONVERSATION, room - sum(map(counter.message, read)))
    # A brief changes only where the topic does, or seldom; before the topic it would break both.
    name = _label(words.this_topic, f"{topic.name}: {topic.brief}", counter, left // 4)
    sought = _label(words.looking_for, request.sought, counter, left // 4)
    left -= counter.text(name) + counter.text(sought)
    shown = TranscriptFormatter(counter, room // 5, language, min(_REPLY, room // 5))
    lines = shown.format_messages(tail)
    before = hash((*map(get_text, [system, *read]), name))
    cut = begin(before, [r.seq for r in tail], measure_each(lines, counter), left)
    # The first is written again, so that it is dated. Without a notice: its count would change.
    current = [*shown.format_messages(tail[cut : cut + 1]), *lines[cut + 1 :]]
    if current:
        current[0] = f"{name}{words.now}\n{current[0]}"
    last = [HumanMessage(sought, additional_kwargs={PASSING: True})] if sought else []
    return [system, *read, *map(HumanMessage, current), *last]


def _label(label: str, text: str, counter: TokenCounter, room: int) -> str:
    """A line under its label, cut to some tokens; "" if there is nothing in it."""
    said = shorten(fence_line(text).strip(": "), room, counter.text)
    return f"{label}\n{said}\n" if said else ""


def make_reading_schema(known: Set[str]) -> dict[str, Any]:
    """A JSON schema of a reading, which can name no ids but those that are known."""
    named = {"type": "string", "enum": sorted(known)}
    most = max(_MOST_QUOTES, math.ceil(_EVERYTHING * len(known)))
    fields = {
        "relevance_score": {"type": "number"},
        "referenced_messages": {"type": "array", "items": named, "maxItems": most},
        "summary": {"type": "string", "maxLength": _SUMMARY_LIMIT},
    }
    closed = {"required": list(fields), "additionalProperties": False}
    return {"type": "object", "properties": fields, **closed}


def parse_reading(text: str) -> ParsedReading:
    """A reader's score, ids and summary.

    Raises:
        UnusableAnswerError: If there is no score.
    """
    return first_of(text, "relevance score", _reading_of_fields, _parse_labelled_score)


def _parse_reading_of(text: str, known: Set[str]) -> ParsedReading:
    """The reading of a topic; raises `UnusableAnswerError` too if it names strangers alone."""
    reading = parse_reading(text)
    if reading.ids and known.isdisjoint(reading.ids):
        raise UnusableAnswerError(f"none of the ids is in the topic: {', '.join(reading.ids[:5])}")
    return reading


def _reading_of_fields(text: str) -> ParsedReading | None:
    for body in [*(e.body for e in find_elements(text, "topic_result")), text]:
        for field_of in lookups(body, *_TAGS):
            score = parse_score(field_of("relevance_score", "score"))
            if score is not None:
                ids = field_of("referenced_message_ids", "referenced_messages")
                return ParsedReading(
                    score, parse_message_ids(ids, _MOST_NAMED), field_of("summary")
                )
    return None


def _parse_labelled_score(text: str) -> ParsedReading | None:
    """A score from a cut answer, or one that only says `relevance_score: 0.2`."""
    match = _LABELLED_SCORE.search(text)
    score = parse_score(match[1]) if match else None
    return None if score is None else ParsedReading(score)


def _make_reading(topic: str, score: float, ids: Sequence[str], summary: str) -> Reading:
    if score < _LEAST_SCORE:
        return Reading(topic=topic, score=score)
    weights = [score * max(0.5, 1 - _DECAY * place) for place in range(len(ids))]
    return Reading(
        topic=topic,
        score=score,
        quotes=tuple(Quote(id=i, weight=w) for i, w in zip(ids, weights, strict=True)),
        summary=clip(summary, _SUMMARY_LIMIT),
    )


def _check_summary(
    summary: str, ids: Sequence[str], request: ReadRequest
) -> tuple[str, tuple[str, ...]]:
    """The summary if it may be believed, else "" and why not.

    A summary without a quote under it is no memory, and neither is one with a name or a number
    that nobody said.
    """
    if not summary or not ids:
        return "", ("a summary without a quote",) if summary else ()
    unsaid = find_unsaid(summary, [*request.messages, *request.tail])
    refusal = note_repairs(
        unsaid, "thing in the summary stands in no message", "things in the summary stand nowhere"
    )
    return ("", refusal) if unsaid else (summary, ())


def find_unsaid(text: str, messages: Sequence[StoredMessage]) -> list[str]:
    """The numbers of a text, and its names in Latin letters, that stand in none of the messages.

    A capitalised word counts as a name within a sentence only. What a message is dated by counts
    as said: the day, its weekday, the month's name and the year.
    """
    named = dict.fromkeys(match[0] for match in _NAMED.finditer(text))
    if not named:
        return []
    days = {m.day for m in messages if parse_iso_seconds(m.day) is not None}
    dates = map(date.fromisoformat, days)
    dated = [f"{d:%Y %m %d %B %b %A %a} {d.month} {d.day}" for d in dates]
    said = _join_numbers("\n".join([*(m.line for m in messages), *dated])).lower()
    return [name for name in named if not all(_stands_in(w, said) for w in _split_words(name))]


def _split_words(text: str) -> list[str]:
    """Runs of letters and of digits in lower case, without a number's commas and a name's `'s`."""
    return re.findall(r"\d+|[^\W\d_]+", re.sub(r"['’]s\b", "", _join_numbers(text)).lower())


def _join_numbers(text: str) -> str:
    """A text without the commas within its numbers."""
    return re.sub(r"(\d),(?=\d{3})", r"\1", text)


def _stands_in(word: str, text: str) -> bool:
    """True if a word stands in a text with no letter beside its letters, no digit beside digits.

    A topic's text is long and a summary's names are few: looking for these is faster than taking
    the text to pieces.
    """
    belongs = str.isdecimal if word.isdecimal() else str.isalpha
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (belongs(text[at - 1 : at]) or belongs(text[end : end + 1])):
            return True
        at = text.find(word, at + 1)
    return False


class EmbeddedReader(LocalRole[ReadRequest, Reading]):
    """Scores a topic and quotes its messages by what words and vectors find, without a model."""

    by_index: ClassVar[bool] = True
    """What it quotes is in the index: topics need not be active for it."""

    def call(self, request: ReadRequest) -> Answer[Reading]:
        """Read one topic by the weights that came with the request."""
        weights = {m.id: request.weights[m.id] for m in request.messages if m.id in request.weights}
        best = max(request.weights.values(), default=0.0)
        return Answer(read_by_weights(request.topic.id, request.prior, weights, best))


def read_by_weights(topic: str, prior: float, weights: Mapping[str, float], best: float) -> Reading:
    """A reading of a topic by what the index found in it.

    Args:
        topic: Its id.
        prior: Its relevance, 0 to 1.
        weights: Weights of its messages, by short id, 0 to 1.
        best: Weight of the best message of all topics.
    """
    found: list[tuple[float, str]] = []
    if prior >= _LEAST_SCORE:
        found = sorted(
            ((w, i) for i, w in weights.items() if w >= _LEAST_WEIGHT * best), reverse=True
        )
    quotes = tuple(Quote(id=i, weight=round(w, 4)) for w, i in found)
    return Reading(topic=topic, score=round(prior, 4), quotes=quotes, source="index")


READER: RoleSpec[Reader] = RoleSpec(
    name="reader",
    purpose="reads an active topic before a reply: a score, messages worth quoting, a summary",
    answer_tokens=1_500,
    answers=Reading,
    chat=ChatReader,
    embedded=lambda embedder: EmbeddedReader(),
)
