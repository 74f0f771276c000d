"""The arbiter played by a chat model: yes or no."""

from __future__ import annotations

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from topicloom.effects import Step
from topicloom.errors import UnusableAnswerError
from topicloom.prompts.loader import prompt
from topicloom.prompts.verdict import parse_verdict
from topicloom.prompts.wording import wording
from topicloom.roles.base import Answer
from topicloom.roles.llm.dialogue import LLMRole
from topicloom.roles.llm.mending import clip
from topicloom.state.boundary import BoundaryQuestion
from topicloom.state.records import text_of

_SHOWN = 4_000
"""Characters shown of what went before, and of the request; a boundary shows in far fewer."""


class LLMArbiter(LLMRole[BoundaryQuestion, float]):
    """YES is 1 and NO is 0; whatever else comes back leaves the prior, with a remark."""

    role = "arbiter"

    def step(self, request: BoundaryQuestion) -> Step[Answer[float]]:
        """Ask once: what is no yes or no leaves the prior, with a remark."""
        messages = arbiter_messages(request)
        answer, usage = yield from self.send("", "arbiter", messages)
        try:
            return Answer(float(parse_verdict(text_of(answer))), usage)
        except UnusableAnswerError as error:
            remark = f"{error}: left at {request.prior:.2f}"
            return Answer(request.prior, usage, (remark,))


def arbiter_messages(question: BoundaryQuestion) -> list[BaseMessage]:
    """The prompt by which a boundary is judged; the request stands last."""
    words = wording(question.language)
    return [
        SystemMessage(prompt("arbiter", question.language)),
        HumanMessage(f"{words.task}\n{clip(question.summary, _SHOWN) or words.nothing}"),
        HumanMessage(f"{words.request}\n{clip(question.request, _SHOWN)}"),
    ]
