"""Simulated readers: chat models on the real prompts that know which messages are the evidence.

What they cost or bring is the pipeline's doing alone: prompts, parsers, budget, stand-ins. Only the
questions are put to them. The conversation is fed to the embedded roles, so that every kind of
reader is asked of the same session.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, cast

from langchain_core.messages import BaseMessage

from topicloom import (
    READER,
    ROUTER,
    Answer,
    ConfigurationError,
    Roles,
    Route,
    RouteRequest,
    Storage,
)
from topicloom.lab import (
    Chat,
    ChatReader,
    ChatRouter,
    PrefixMeter,
    RankedSentences,
    Step,
    get_text,
    get_wording,
)
from topicloom_app.recordings.conversations import Conversation, Question
from topicloom_lab.asking import AnsweringModel
from topicloom_lab.known_topics import open_unfinished

ReaderKind = Literal["embedded", "ideal", "noisy", "silent", "garbage"]
SimulatedRole = Literal["reader", "router"]

_MOST_WRONG = 4
"""Ids that a wrong answer names."""
_SUMMARY = 400
"""Characters of a summary at most."""
_NOTHING_SAID = "What the newest message asks for was said here."
_BOTH = (get_wording("en"), get_wording("zh"))
_NAMES = re.compile("|".join(re.escape(words.these_topics) for words in _BOTH))
_HEADS = (head for words in _BOTH for head in (words.topic_head, words.found_head))
_HEAD = re.compile("|".join(re.escape(h).replace(r"\{id\}", r"(t\d+)") for h in _HEADS))
_TOPICS = re.compile("|".join(re.escape(words.topics) for words in _BOTH))
_LISTED = re.compile(r"^\[([mt]\d+)\] ", re.M)

_READING = """<topic_result topic="{topic}">
<referenced_messages>
{ids}
</referenced_messages>
<relevance_score>{score}</relevance_score>
<summary>
{summary}
</summary>
</topic_result>"""
_NO_READING = (
    '<topic_result topic="{topic}">\n<relevance_score>0.1</relevance_score>\n</topic_result>'
)
_ROUTE = "<topic_routing>\n<matched_topics>\n{topics}\n</matched_topics>\n</topic_routing>"
_ROUTED = '<topic id="{id}" relevance="{relevance}">it is about that</topic>'
_NO_ROUTE = """<topic_routing>
<matched_topics></matched_topics>
<no_match_reason>no topic is about that</no_match_reason>
</topic_routing>"""

RUBBISH: Mapping[SimulatedRole, Mapping[str, str]] = {
    "reader": {
        "empty": "",
        "prose": "Happy to help! What a lovely conversation this is, m1 above all.",
        "truncated": "<topic_result>\n<relevance_score>0.",
        "strangers": _READING.format(
            topic="t1", score=0.9, ids="m900001\nm900002", summary=_NOTHING_SAID
        ),
        "huge": _READING.format(
            topic="t1", score=10**30, ids="m" + "9" * 40, summary=_NOTHING_SAID
        ),
        "everything": _READING.format(topic="t1", score=0.9, ids="m1-m9999", summary=_NOTHING_SAID),
    },
    "router": {
        "empty": "",
        "prose": "Happy to help! What a lovely conversation this is, t1 above all.",
        "truncated": "<topic_routing>\n<matched_top",
        "strangers": _ROUTE.format(topics=_ROUTED.format(id="t900001", relevance="high")),
        "huge": _ROUTE.format(topics=_ROUTED.format(id="t" + "9" * 40, relevance=10**30)),
        "everything": _ROUTE.format(
            topics="\n".join(_ROUTED.format(id=f"t{n}", relevance="high") for n in range(1, 100))
        ),
    },
}
"""What readers and routers of the kind `garbage` answer, by what is wrong with it."""


@dataclass(frozen=True, slots=True)
class ReaderChoice:
    """Who reads topics, and routes, when a question is asked."""

    kind: ReaderKind = "embedded"
    share: float = 0.0
    """Share of the answers that are wrong; of `noisy` alone."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The choice that `ideal`, `noisy:0.2`, `silent`, `garbage` or `embedded` names.

        Raises:
            ConfigurationError: It names none.
        """
        match = re.fullmatch(r"(embedded|ideal|silent|garbage)|(noisy):(\d*\.?\d+)", text)
        share = float(match[3] or 0) if match else 0.0
        if match is None or share > 1:
            raise ConfigurationError(
                "no readers {text!r}: there are embedded, ideal, noisy:SHARE (0 to 1), silent and"
                " garbage",
                text=text,
            )
        return cls(cast("ReaderKind", match[1] or match[2]), share)

    def __str__(self) -> str:
        return f"noisy:{self.share:g}" if self.kind == "noisy" else self.kind


EMBEDDED = ReaderChoice()
"""Those that the conversation is fed to."""


class SimulatedReaders:
    """Answers prompts of readers and routers, knowing the question that is being asked."""

    def __init__(self, choice: ReaderChoice, conversation: Conversation, storage: Storage) -> None:
        """Readers that answer so well what is asked about a conversation in a storage."""
        self._choice, self._storage = choice, storage
        said = [m for m in conversation.messages if m.text.strip()]
        self._numbers = {message.id: f"m{n}" for n, message in enumerate(said, start=1)}
        self._texts = {f"m{n}": message.text for n, message in enumerate(said, start=1)}
        self._question, self._query = "", ""
        self._gold: set[str] = set()

    def expect(self, question: Question) -> None:
        """Be asked for the evidence of a question from now on."""
        self._question, self._query = question.id, question.question
        self._gold = {self._numbers[i] for i in question.evidence if i in self._numbers}

    def expect_topics(self, request: RouteRequest) -> None:
        """Learn which candidates of a search hold the evidence; their briefs need not say so."""
        store, session = open_unfinished(self._storage, request.session)
        ranges, gold = store.ranges(session), set(self._gold)
        for topic in request.topics:
            # Forks may be there: what came later is none of it.
            held = (f"m{n}" for n in ranges.numbers(topic.id) if n <= topic.newest)
            self._gold |= set() if gold.isdisjoint(held) else {topic.id}

    def play(self, roles: Roles, window: int) -> Roles:
        """The roles with reader and router, of that window, played by these; stand-ins stay."""
        reader = ChatReader(self._chat("reader", window))
        router = _InformedRouter(self._chat("router", window), self)
        return roles.replace(READER, reader).replace(ROUTER, router)

    def _chat(self, role: SimulatedRole, window: int) -> Chat:
        model = AnsweringModel(answer=lambda prompt, _: self.answer(role, prompt))
        return Chat.of(model, PrefixMeter(), window=window)

    def answer(self, role: SimulatedRole, prompt: Sequence[BaseMessage]) -> str:
        """The answer to a prompt: always the same to the same question about the same topic."""
        text = "\n".join(map(get_text, prompt[1:]))
        if role == "router":
            listed = _LISTED.findall(_TOPICS.split(text)[-1])
            ids = self._choose(role, listed)
            if ids is None or isinstance(ids, str):
                return ids or ""
            topics = "\n".join(_ROUTED.format(id=i, relevance="high") for i in ids)
            return _ROUTE.format(topics=topics) if ids else _NO_ROUTE
        parts = []
        for topic, listed in _list_topics(text).items():
            ids = self._choose(role, listed)
            if ids is None or isinstance(ids, str):
                return ids or ""
            parts.append(self._write_reading(topic, ids))
        return "\n".join(parts)

    def _choose(self, role: SimulatedRole, listed: Sequence[str]) -> Sequence[str] | str | None:
        """What it names of some ids; None for no answer, or an answer that is rubbish."""
        draw = random.Random(f"{role} {self._question} {listed[:1]}")
        if self._choice.kind == "garbage":
            return draw.choice(list(RUBBISH[role].values()))
        if self._choice.kind == "silent":
            return []
        right = [i for i in listed if i in self._gold]
        if draw.random() >= self._choice.share:
            return right
        others = [i for i in listed if i not in self._gold]
        wrong = [None, draw.sample(others, min(_MOST_WRONG, len(others)))]
        return draw.choice([*wrong, []] if right else wrong)

    def _write_reading(self, topic: str, ids: Sequence[str]) -> str:
        if not ids:
            return _NO_READING.format(topic=topic)
        said = [self._texts[i] for i in ids if i in self._texts]
        summary = summarize_said(said, self._query)
        return _READING.format(topic=topic, score=0.9, ids="\n".join(ids), summary=summary)


def _list_topics(text: str) -> dict[str, list[str]]:
    """Ids of the messages of each topic in a reader's prompt."""
    _, *parts = _HEAD.split(_NAMES.split(text)[0])
    groups = _HEAD.groups
    return {
        next(filter(None, parts[n : n + groups])): _LISTED.findall(parts[n + groups])
        for n in range(0, len(parts), groups + 1)
    }


def summarize_said(texts: Sequence[str], query: str) -> str:
    """What some texts have on a question: of each the sentences that say most of it.

    They share `_SUMMARY` characters; one whose best sentence is longer than its share is cut.
    """
    parts = list[str]()
    for place, text in enumerate(texts):
        # A line end between two parts counts as well.
        room = (_SUMMARY - sum(len(part) + 1 for part in parts)) // (len(texts) - place)
        stretches = RankedSentences.of(text, query).select(room, len)
        found = " ".join(text[begin:end].strip() for begin, end in stretches)
        part = " ".join(found.split()) or cut_at_word(text, room)
        if part:
            parts.append(part)
    return "\n".join(parts)


def cut_at_word(text: str, limit: int) -> str:
    """The beginning of a text in one line, at most `limit` characters, without a torn word."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    begun = line[: max(0, limit)]
    return begun.rpartition(" ")[0] or begun


class _InformedRouter(ChatRouter):
    """A router whose model knows what the candidates hold."""

    def __init__(self, chat: Chat, readers: SimulatedReaders) -> None:
        super().__init__(chat)
        self._readers = readers

    def step(self, request: RouteRequest) -> Step[Answer[Route]]:
        """Find the topics; see `ChatRouter.step`."""
        self._readers.expect_topics(request)
        return super().step(request)
