"""The reviewer as a chat model: it sums a topic up and says how much it matters."""

from __future__ import annotations

from topicloom.context.windows import brief_messages
from topicloom.prompts.reviews import parse_review
from topicloom.roles.base import Answer, ReviewRequest
from topicloom.roles.llm.dialogue import Dialogue, LLMRole, ask
from topicloom.roles.llm.mending import clip
from topicloom.state.review import Assessment

_NAME, _BRIEF, _SUMMARY = 80, 2_000, 4_000
"""Characters of a name, a brief and a summary; the prompt asks for half of the latter two."""


class LLMReviewer(LLMRole[ReviewRequest, Assessment]):
    """Reviews a topic from its messages and its former brief."""

    role = "reviewer"

    def dialogue(self, request: ReviewRequest) -> Dialogue[Answer[Assessment]]:
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
        asked = yield from ask(
            self._chat, request, f"reviewer:{topic.id}", prompt, parse_review, "topic_review"
        )
        said = asked.value
        assessment = Assessment(
            name=clip(said.name, _NAME) or topic.name,
            brief=clip(said.brief, _BRIEF) or topic.brief or clip(said.summary, _BRIEF),
            summary=clip(said.summary, _SUMMARY),
            importance=said.importance,
            once=said.once,
        )
        return Answer(assessment, asked.usage, asked.remarks)
