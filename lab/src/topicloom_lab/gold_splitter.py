"""A simulated splitter: a chat model on the real prompts that knows the topic of each message.

What it loses is the pipeline's doing alone: what the prompt shows, its parser, the split itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal

from langchain_core.messages import BaseMessage

from topicloom import Answer, Assignment, SplitRequest
from topicloom.lab import Chat, ChatSplitter, PrefixMeter, Step, get_text
from topicloom_lab.asking import AnsweringModel
from topicloom_lab.known_topics import KnownSplitter

SplitterKind = Literal["embedded", "gold"]
"""The splitter of a session: the embedded one, or a chat model that knows the topics."""

_LISTED = re.compile(r"^\[([mt]\d+)\] ", re.M)
_MARKUP = re.compile(r'[<>"]')


class GoldSplitter(ChatSplitter):
    """Asks a model that assigns every message it is shown to the topic that it is known to be in.

    A topic that the prompt does not list is opened again: the model cannot name it.
    """

    def __init__(self, known: KnownSplitter, window: int) -> None:
        """A splitter with a main window of so many tokens; `known` tells the topics."""
        model = AnsweringModel(answer=lambda prompt, _: self._answer(prompt))
        super().__init__(Chat.of(model, PrefixMeter(), window=window))
        self._known = known
        # Filled, not set: a role is copied for a call, and the model answers for all copies.
        self._assigned: list[Assignment] = []

    def step(self, request: SplitRequest) -> Step[Answer[tuple[Assignment, ...]]]:
        """Assign the messages; see `ChatSplitter.step`."""
        self._assigned[:] = self._known.call(request).value
        return super().step(request)

    def _answer(self, prompt: Sequence[BaseMessage]) -> str:
        shown = set(_LISTED.findall("\n".join(map(get_text, prompt[1:]))))
        lines = _write_assignments([a for a in self._assigned if a.message in shown], shown)
        return "\n".join(["<topic_split>", *lines, "</topic_split>"])


def _write_assignments(assigned: Sequence[Assignment], shown: set[str]) -> Iterator[str]:
    """A line for each run of messages that go to one topic."""

    def write_topic(assignment: Assignment) -> str:
        if assignment.topic in shown:
            return f'topic="existing_active" topic_id="{assignment.topic}"'
        return f'topic="new" topic_name="{_MARKUP.sub(" ", assignment.name)}"'

    for topic, run in groupby(assigned, write_topic):
        ids = [assignment.message for assignment in run]
        yield f'<assignment msg_id="{", ".join(ids)}" {topic}></assignment>'
