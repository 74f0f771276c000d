"""The reviewer: it sums a topic up and says how much it matters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from topicloom.effects import Step
from topicloom.review.decisions import Assessment
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.brief import (
    BriefRequest,
    EmbeddedBriefWriter,
    build_brief_prompt,
    central_messages,
    make_brief,
)
from topicloom.roles.chat import ChatRole
from topicloom.roles.markup import first_of, lookups
from topicloom.roles.values import parse_score
from topicloom.search.embedder import Embedder
from topicloom.state.language import Language
from topicloom.state.safe_text import clip
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import Topic

_SUMMARY_LIMIT = 4_000
"""Characters of a summary; the prompt asks for half of it."""
_UNKNOWN = 0.5
"""Importance of a topic of which the answer does not say it."""
_WORDS = {"high": 0.9, "medium": 0.5, "low": 0.1, "高": 0.9, "中": 0.5, "低": 0.1}
_NO = re.compile(r"\W*(?:no|false|否|不)", re.I)
_TAGS = ("name", "brief", "summary", "importance", "lasting", "topic_review")
_READ = 400
_QUOTED = 12
_SUMMARY, _LINE = 2_000, 240
"""Characters of a summary and of a line in it: a few hundred words at most."""
_WORTH_KEEPING = 0.6
"""Least importance of a topic with an informative message, and most of one without:
`ReviewPolicy.important`, from which topics stay. See `docs/guides/reviews.md`."""
_ONCE = 2
"""Rounds of one day up to which a topic that was never used again is over, if all that the
user did was to ask."""
_STATEMENT = re.compile(r"(?<![^.!?。！？\n])[^.!?。！？\n]{4,}+(?:[.!。！\n]|$)")
"""A sentence that does not end as a question."""
_OWN_AFFAIRS = re.compile(
    r"\b(?:i|i['’](?:m|ve|d|ll)|my|mine|myself|we|we['’](?:re|ve|d|ll)|our|ours)\b|[我咱俺]",
    re.IGNORECASE,
)
"""The user's own affairs: a question about them is informative ("I earn 85,000: is it little?")."""


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """A topic to review."""

    session: str
    topic: Topic
    """The topic with its former name, brief and summary."""
    messages: Sequence[StoredMessage]
    """Its messages, in order; for two topics that may be merged, those of both."""
    language: Language
    uses: int = 0
    """How often it was quoted lately, and how many topics refer to it."""


class Reviewer(Role[ReviewRequest, Assessment], Protocol):
    """Sums a topic up and says how much it matters."""


class ChatReviewer(ChatRole[ReviewRequest, Assessment]):
    """Reviews a topic from its messages and its former brief."""

    role = "reviewer"

    def step(self, request: ReviewRequest) -> Step[Answer[Assessment]]:
        """Review the topic; what the answer does not give stays as it was."""
        topic = request.topic
        prompt = build_brief_prompt(
            _brief_request(request), self._chat.prompt_window, role="reviewer"
        )
        window = f"reviewer:{topic.id}"
        answer = yield from self.ask(request, window, prompt, parse_review, "<topic_review>")
        said = answer.value
        brief = make_brief(topic, said.name, said.brief or topic.brief or said.summary)
        summary = clip(said.summary, _SUMMARY_LIMIT)
        changed = {"name": brief.name, "brief": brief.text, "summary": summary}
        return replace(answer, value=said.model_copy(update=changed))


def parse_review(text: str) -> Assessment:
    """A topic's summary, name, brief, importance, and whether it lasts.

    Raises:
        UnusableAnswerError: If there is no summary.
    """
    return first_of(text, "summary", _review_of_fields)


def _review_of_fields(text: str) -> Assessment | None:
    for field_of in lookups(text, *_TAGS):
        if summary := field_of("summary"):
            return Assessment(
                name=" ".join(field_of("name").split()),
                brief=field_of("brief"),
                summary=summary,
                importance=_parse_importance(field_of("importance").lower()),
                once=_NO.match(field_of("lasting")) is not None,
            )
    return None


def _parse_importance(said: str) -> float:
    share = parse_score(said)
    words = (value for word, value in _WORDS.items() if word in said)
    return next(words, _UNKNOWN) if share is None else share


def _brief_request(request: ReviewRequest) -> BriefRequest:
    return BriefRequest(request.session, request.topic, request.messages, request.language)


class EmbeddedReviewer(LocalRole[ReviewRequest, Assessment]):
    """Quotes and counts, without a model."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._briefs = EmbeddedBriefWriter(embedder)

    def call(self, request: ReviewRequest) -> Answer[Assessment]:
        brief = self._briefs.call(_brief_request(request)).value
        said = [r for r in request.messages if r.role == "user"]
        days = {r.day for r in said}
        return Answer(
            Assessment(
                name=request.topic.name or brief.name,  # splits name topics: they know the others
                brief=brief.text,
                summary=self._summarize(request.messages) or brief.text,
                importance=round(rate_importance(request.messages, request.uses), 3),
                once=len(said) <= _ONCE
                and len(days) <= 1
                and not (request.uses or any(map(is_informative, said))),
            )
        )

    def _summarize(self, messages: Sequence[StoredMessage]) -> str:
        said = [m for m in messages if m.role == "user" and m.text.strip()][-_READ:]
        if not said:
            return ""
        left = _SUMMARY
        chosen: list[StoredMessage] = []
        for message in central_messages(said, self._embedder, _QUOTED):
            left -= min(len(message.text), _LINE) + len(message.day) + 3
            if chosen and left < 0:
                break
            chosen.append(message)
        chosen.sort(key=lambda r: r.seq)
        return "\n".join(f"{r.day}: {' '.join(r.text.split())[:_LINE]}" for r in chosen)


def is_informative(message: StoredMessage) -> bool:
    """True if a message says more than it asks, or asks about the user's own affairs."""
    said = message.text.strip()
    return _STATEMENT.search(said) is not None or _OWN_AFFAIRS.search(said) is not None


def rate_importance(messages: Sequence[StoredMessage], uses: int) -> float:
    """The importance of a topic, 0 to 1: more for each round and each use, but ever less more.

    Information from the user is worth keeping.
    """
    said = [m for m in messages if m.role == "user"]
    share = (len(said) / (len(said) + 4) + uses / (uses + 1)) / 2
    informative = any(map(is_informative, said))
    return _WORTH_KEEPING + (1 - _WORTH_KEEPING) * share if informative else _WORTH_KEEPING * share


REVIEWER: RoleSpec[Reviewer] = RoleSpec(
    name="reviewer",
    purpose="sums a topic up and rates it, in a review",
    answer_tokens=3_000,
    answers=Assessment,
    chat=ChatReviewer,
    embedded=EmbeddedReviewer,
)
