"""The brief writer as a chat model: it names a topic and says what belongs to it."""

from __future__ import annotations

from topicloom.context.windows import brief_messages
from topicloom.effects import Step
from topicloom.prompts.parsers import parse_brief
from topicloom.roles.base import Answer, Brief, BriefRequest
from topicloom.roles.llm.dialogue import LLMRole
from topicloom.roles.llm.mending import clip
from topicloom.state.topics import Topic

_NAME = 80
"""Characters of a topic's name."""
_BRIEF = 2_000
"""Characters of a topic's brief; the prompt asks for half of it (spec 000, 4.6: about 1 KB)."""


class LLMBriefWriter(LLMRole[BriefRequest, Brief]):
    """Writes the brief of a topic from its messages and its former brief."""

    role = "brief"

    def step(self, request: BriefRequest) -> Step[Answer[Brief]]:
        """Write the brief."""
        topic = request.topic
        prompt = brief_messages(
            request.records,
            topic.name,
            topic.brief,
            request.language,
            self._chat.counter,
            self._chat.limit,
        )
        asked = yield from self.ask(
            request, f"brief:{topic.id}", prompt, parse_brief, "topic_brief"
        )
        brief = brief_of(topic, asked.value.name, asked.value.text)
        return Answer(brief, asked.usage, asked.remarks)


def brief_of(topic: Topic, name: str, text: str) -> Brief:
    """A brief of what a model said, cut to size; a topic keeps its name if it gave none."""
    return Brief(clip(name, _NAME) or topic.name, clip(text, _BRIEF))
