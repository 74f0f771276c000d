"""The brief writer: it names a topic and says what belongs to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from topicloom.context.segments import Summarize
from topicloom.context.windows import RESERVE, PromptWindow, topic_listing, topic_messages
from topicloom.effects import Step
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.chat import ChatRole
from topicloom.roles.markup import first_of, lookups
from topicloom.search.embedder import Embedder, dot_products
from topicloom.state.fence import fence, fence_line
from topicloom.state.hierarchy import PATH_SEPARATOR, find_path
from topicloom.state.language import Language
from topicloom.state.safe_text import clip, cut
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic
from topicloom.topics.naming import NAME_LIMIT, find_keywords, make_name, pair_rounds

BRIEF_LIMIT = 2_000
"""Characters of a topic's brief; the prompt asks for half of it."""
_SIZE = 1_000
"""Characters of a brief by extracts, about."""
_READ = 200
"""Newest messages that are weighed."""
_QUOTED = 8
"""Messages that are quoted at most."""
_OTHERS = 64
"""Other topics, the newest ones, that a new name has to differ from."""
_OTHERS_SHOWN = 1_000
"""Tokens of their names and briefs that a model is shown at most, and an eighth of its window."""


@dataclass(frozen=True, slots=True)
class BriefRequest:
    """A topic whose brief has to be written again."""

    session: str
    topic: Topic
    """The topic with its former name and brief."""
    messages: Sequence[StoredMessage]
    """All of its messages, in order."""
    language: Language
    others: Mapping[str, str] = field(default_factory=dict)
    """Names of other topics, each with what that topic is about: a name has to tell them apart."""
    within: Sequence[str] = ()
    """Names of the topics that it is a part of."""


@dataclass(frozen=True, slots=True)
class Brief:
    """A topic's name and brief."""

    name: str
    text: str
    """About 1 KB."""


class BriefWriter(Role[BriefRequest, Brief], Protocol):
    """Writes the brief by which a topic is recognised."""


class ChatBriefWriter(ChatRole[BriefRequest, Brief]):
    """Writes the brief of a topic from its messages and its former brief."""

    role = "brief"

    def step(self, request: BriefRequest) -> Step[Answer[Brief]]:
        prompt = build_brief_prompt(request, self._chat.prompt_window)
        window = f"brief:{request.topic.id}"
        answer = yield from self.ask(request, window, prompt, parse_brief, "<topic_brief>")
        brief = make_brief(request.topic, answer.value.name, answer.value.text)
        return replace(answer, value=brief)


def make_brief(topic: Topic, name: str, text: str) -> Brief:
    """A brief by a model, cut to size; a topic keeps its name if the model gave none."""
    return Brief(clip(name, NAME_LIMIT) or topic.name, clip(text, BRIEF_LIMIT))


def build_brief_prompt(
    request: BriefRequest, window: PromptWindow, *, role: str = "brief"
) -> list[BaseMessage]:
    """The prompt by which a topic's brief is written, oldest messages left out if they don't fit.

    What the topic is a part of and other topics stand behind them, the former brief last. `role`
    says whose instructions stand first: a reviewer is shown the same.
    """
    counter, topic = window.counter, request.topic
    words = get_wording(request.language)
    system = SystemMessage(window.prompts(role, request.language))
    known = [fence_line(topic.name) or words.nothing, fence(topic.brief) or words.nothing]
    whole = [words.part_of, fence_line(PATH_SEPARATOR.join(request.within))]
    others = [Topic(id="t0", name=name, brief=about) for name, about in request.others.items()]
    room = min(_OTHERS_SHOWN, window.limit // 8)
    listed = topic_listing([fence_line(t.name) for t in others], others, counter, room)
    lines = [
        *(whole if request.within else ()),
        *([words.rest, listed] if others else ()),
        *(words.former_brief, *known),
    ]
    former = HumanMessage("\n".join(lines))
    room = window.limit - counter.message(system) - counter.message(former) - RESERVE
    return [system, *topic_messages(request.messages, counter, request.language, room), former]


def parse_brief(text: str) -> Brief:
    """A topic's name and brief; raises `UnusableAnswerError` if there is no brief."""
    return first_of(text, "brief", _brief_of_fields)


def _brief_of_fields(text: str) -> Brief | None:
    for field_of in lookups(text, "name", "brief", "summary", "topic_brief"):
        if brief := field_of("brief", "summary"):
            return Brief(" ".join(field_of("name").split()), brief)
    return None


class EmbeddedBriefWriter(LocalRole[BriefRequest, Brief]):
    """Quotes the most central messages, and names a topic by what tells it from others."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def call(self, request: BriefRequest) -> Answer[Brief]:
        said = [r for r in request.messages if r.role == "user" and r.text.strip()]
        said = (said or [r for r in request.messages if r.text.strip()])[-_READ:]
        if not said:
            return Answer(Brief(request.topic.name, request.topic.name))
        others = [f"{name}\n{about}" for name, about in request.others.items()]
        name = make_name(
            pair_rounds(request.messages),
            self._embedder,
            former=request.topic.name,
            others=others,
            taken=request.others,
            within=request.within,
        )
        lines = [
            f"{said[0].day} – {said[-1].day}, {len(request.messages)}",
            ", ".join(find_keywords([r.text for r in said], 12, others)),
            *(r.text.strip()[:240] for r in central_messages(said, self._embedder, _QUOTED)),
        ]
        text = ""
        for line in lines:
            if text and len(text) + len(line) > _SIZE:
                break
            text = f"{text}\n{line}" if text else line
        return Answer(Brief(name, text))


def central_messages(
    messages: Sequence[StoredMessage], embedder: Embedder, most: int
) -> list[StoredMessage]:
    """Some of the messages, the most central first, each unlike the ones before it."""
    vectors = embedder.embed([m.text[:600] for m in messages])
    central = dot_products(vectors, vectors.mean(axis=0))
    chosen: list[int] = []
    for _ in range(min(most, len(messages))):
        near = dot_products(vectors, vectors[chosen]) if chosen else np.zeros((len(messages), 1))
        best = int(np.argmax(central - 0.5 * near.max(axis=1)))
        if best in chosen:
            break
        chosen.append(best)
    return [messages[i] for i in chosen]


def summarize_by_extracts(embedder: Embedder, count: Callable[[str], int], limit: int) -> Summarize:
    """A summarizer by the most central messages that fit `limit` tokens, or a part of one."""

    def summarize(messages: Sequence[StoredMessage]) -> str:
        said = [m for m in messages if m.text.strip()]
        if not said:
            return ""
        ranked = central_messages(said, embedder, len(said))
        chosen: list[StoredMessage] = []
        room = limit
        for message in ranked:
            size = count(f"{message.line}\n")
            if size <= room:
                chosen.append(message)
                room -= size
        if not chosen:
            line = ranked[0].line
            return f"{line[: len(line) * limit // max(limit, count(line))]}..."
        return "\n".join(r.line for r in sorted(chosen, key=lambda r: r.seq))

    return summarize


def make_brief_request(
    session: Session,
    topic: Topic,
    messages: Mapping[str, Sequence[StoredMessage]],
    known: Mapping[str, Topic],
) -> BriefRequest:
    """The request for a topic's brief, with the briefs of the topics that are newest.

    A topic without a brief is described by the first messages of the user in it.
    """
    rest = [t for t in known.values() if t.status == "open" and t.id != topic.id]
    rest = sorted(rest, key=lambda t: t.newest, reverse=True)[:_OTHERS]
    others = {t.name: t.brief or _begin(messages.get(t.id, ())) for t in rest}
    within = [t.name for t in find_path(topic, known)[:-1]]
    return BriefRequest(session.id, topic, messages[topic.id], session.language, others, within)


def _begin(messages: Sequence[StoredMessage]) -> str:
    """The beginning of the user's messages, as long as a brief."""
    texts = [cut(m.text, 200) for m in messages if m.role == "user"]
    return cut("\n".join(texts[:20]), BRIEF_LIMIT)


def make_segment_request(
    session: str, messages: Sequence[StoredMessage], language: Language
) -> BriefRequest:
    """The request for a summary of a segment: a brief of it, as if it were a topic."""
    segment = Topic(id=f"segment-{messages[0].seq}", name="")
    return BriefRequest(session, segment, messages, language)


BRIEF: RoleSpec[BriefWriter] = RoleSpec(
    name="brief",
    purpose="names a topic and writes the brief by which it is recognised",
    answer_tokens=1_500,
    answers=Brief,
    chat=ChatBriefWriter,
    embedded=EmbeddedBriefWriter,
)
