"""The merger: it says whether two topics are about the same thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from langchain_core.messages import BaseMessage

from topicloom.context.windows import PromptWindow
from topicloom.effects import Step
from topicloom.prompts.wording import get_wording
from topicloom.roles.base import Answer, LocalRole, Role, RoleSpec
from topicloom.roles.chat import ChatRole
from topicloom.roles.values import parse_verdict
from topicloom.state.fence import fence
from topicloom.state.language import Language
from topicloom.state.safe_text import clip
from topicloom.state.topics import Topic

_SHOWN = 4_000
"""Characters shown of what is known of a topic."""
SAME_TOPIC = 0.75
"""Likeness from which two topics are taken for one. What is merged by mistake is hard to part: none
of 9,524 pairs of halves of different threads came up to it (`benchmarks/merging.py`)."""


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Two topics that may be about the same thing."""

    session: str
    topics: tuple[Topic, Topic]
    likeness: float
    """How alike the index finds them: a cosine."""
    language: Language


class Merger(Role[MergeRequest, float], Protocol):
    """Says how likely two topics are about the same thing."""


class ChatMerger(ChatRole[MergeRequest, float]):
    """YES is 1 and NO is 0."""

    role = "merger"

    def step(self, request: MergeRequest) -> Step[Answer[float]]:
        """Ask, and once more if the answer is neither."""
        prompt = build_merger_prompt(request, self._chat.prompt_window)
        answer = yield from self.ask(request, "merger", prompt, parse_verdict, "YES / NO")
        return Answer(float(answer.value), remarks=answer.remarks)


def build_merger_prompt(request: MergeRequest, window: PromptWindow) -> list[BaseMessage]:
    """The prompt by which two topics are compared."""
    words = get_wording(request.language)
    one, other = map(_text_of, request.topics)
    return window.messages(
        "merger", request.language, f"{words.one_topic}\n{one}", f"{words.other_topic}\n{other}"
    )


def _text_of(topic: Topic) -> str:
    days = f"{topic.first_at[:10]} .. {topic.last_at[:10]}" if topic.first_at else ""
    known = [topic.name, days, topic.brief, topic.summary]
    return clip(fence("\n".join(text for text in known if text)), _SHOWN)


class EmbeddedMerger(LocalRole[MergeRequest, float]):
    """Goes by the likeness alone."""

    def call(self, request: MergeRequest) -> Answer[float]:
        return Answer(float(request.likeness >= SAME_TOPIC))


MERGER: RoleSpec[Merger] = RoleSpec(
    name="merger",
    purpose="says whether two topics are about the same thing, in a review",
    answer_tokens=300,
    answers=float,
    chat=ChatMerger,
    embedded=lambda embedder: EmbeddedMerger(),
    without="the two topics stay apart",
)
