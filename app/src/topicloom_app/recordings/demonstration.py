"""What a model answers in the demonstration, recorded: its readings of topics, and its replies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, TypeAdapter

from topicloom import Answer, LocalRole, Quote, Reading, ReadRequest
from topicloom_app.recordings.replay import find_sample

CITATION = re.compile(r"\{(.*?)\}( ?\[m\d+\])")
"""Words of a reply in braces, and the message that they rest on."""


class RecordedQuestion(BaseModel, frozen=True):
    """A question on the sample, with what was recorded for it."""

    question: str
    scores: Mapping[str, float]
    """Relevance of messages, by short id, 0 to 1. A topic has the score of its best message."""
    named: tuple[str, ...]
    """Short ids of the messages that readers name."""
    reply: str
    """The reply, with braces around the words that rest on a message: `{at 9:30} [m347]`."""

    @property
    def plain_reply(self) -> str:
        """The reply without braces."""
        return CITATION.sub(r"\1\2", self.reply)


class Demonstration(BaseModel, frozen=True):
    """What `topicloom demo` shows in a language."""

    questions: tuple[RecordedQuestion, ...]
    suggestions: tuple[str, ...]
    """Questions for the reader to ask, which need no recording."""


class RecordedReader(LocalRole[ReadRequest, tuple[Reading, ...]]):
    """Reads topics as it was recorded for the question that is expected."""

    model = "recorded"

    def __init__(self) -> None:
        self._expected: RecordedQuestion | None = None

    def expect(self, question: RecordedQuestion) -> None:
        """Set the question of the next turn."""
        self._expected = question

    def call(self, request: ReadRequest) -> Answer[tuple[Reading, ...]]:
        """The recorded readings: 0 for each topic of which nothing was recorded."""
        scores = self._expected.scores if self._expected else {}
        named = self._expected.named if self._expected else ()
        readings = list[Reading]()
        for window in request.windows:
            ids = [m.id for m in window.messages if m.id in scores]
            quotes = tuple(Quote(id=i, weight=scores[i]) for i in ids if i in named)
            score = max((scores[i] for i in ids), default=0.0)
            readings.append(Reading(topic=window.topic.id, score=score, quotes=quotes))
        return Answer(tuple(readings))


def load_demonstration(language: Literal["en", "zh"]) -> Demonstration:
    """The demonstration in a language; its file is packaged beside the sample."""
    packed = find_sample().with_name("demo.json").read_bytes()
    return TypeAdapter(dict[str, Demonstration]).validate_json(packed)[language]
