"""The merger as a chat model: are two topics about the same thing?"""

from __future__ import annotations

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from topicloom.effects import Step
from topicloom.prompts.loader import prompt
from topicloom.prompts.reviews import ONE_TOPIC, OTHER_TOPIC
from topicloom.prompts.verdict import parse_verdict
from topicloom.roles.base import Answer, MergeRequest
from topicloom.roles.llm.dialogue import LLMRole
from topicloom.roles.llm.mending import clip
from topicloom.state.topics import Topic

_SHOWN = 4_000
"""Characters shown of what is known of a topic."""


class LLMMerger(LLMRole[MergeRequest, float]):
    """YES is 1 and NO is 0."""

    role = "merger"

    def step(self, request: MergeRequest) -> Step[Answer[float]]:
        """Ask, and once more if the answer is neither."""
        prompt = merger_messages(request)
        asked = yield from self.ask(request, "merger", prompt, parse_verdict, "YES / NO")
        return Answer(float(asked.value), asked.usage, asked.remarks)


def merger_messages(request: MergeRequest) -> list[BaseMessage]:
    """The prompt by which two topics are compared."""
    one, other = request.topics
    return [
        SystemMessage(prompt("merger", request.language)),
        HumanMessage(f"{ONE_TOPIC[request.language]}\n{_told(one)}"),
        HumanMessage(f"{OTHER_TOPIC[request.language]}\n{_told(other)}"),
    ]


def _told(topic: Topic) -> str:
    days = f"{topic.first_at[:10]} .. {topic.last_at[:10]}" if topic.first_at else ""
    known = [topic.name, days, topic.brief, topic.summary]
    return clip("\n".join(text for text in known if text), _SHOWN)
