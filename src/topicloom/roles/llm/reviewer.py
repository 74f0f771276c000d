"""The reviewer as a chat model: it sums a topic up and says how much it matters."""

from __future__ import annotations

from topicloom.context.windows import brief_messages
from topicloom.effects import Step
from topicloom.prompts.reviews import parse_review
from topicloom.roles.base import Answer, ReviewRequest
from topicloom.roles.llm.brief import brief_of
from topicloom.roles.llm.dialogue import LLMRole
from topicloom.roles.llm.mending import clip
from topicloom.state.review import Assessment

_SUMMARY = 4_000
"""Characters of a summary; the prompt asks for half of it."""


class LLMReviewer(LLMRole[ReviewRequest, Assessment]):
    """Reviews a topic from its messages and its former brief."""

    role = "reviewer"

    def step(self, request: ReviewRequest) -> Step[Answer[Assessment]]:
        """Review the topic; what the answer does not give stays as it was."""
        topic = request.topic
        prompt = brief_messages(
            request.records,
            topic.name,
            topic.brief,
            request.language,
            self._chat.counter,
            self._chat.limit,
            role="reviewer",
        )
        asked = yield from self.ask(
            request, f"reviewer:{topic.id}", prompt, parse_review, "topic_review"
        )
        said = asked.value
        brief = brief_of(topic, said.name, said.brief or topic.brief or said.summary)
        assessment = Assessment(
            name=brief.name,
            brief=brief.text,
            summary=clip(said.summary, _SUMMARY),
            importance=said.importance,
            once=said.once,
        )
        return Answer(assessment, asked.usage, asked.remarks)
