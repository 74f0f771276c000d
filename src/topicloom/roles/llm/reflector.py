"""The reflector as a chat model: it notes what is worth knowing about the user for good."""

from __future__ import annotations

from topicloom.context.reflecting import reflector_messages
from topicloom.effects import Step
from topicloom.prompts.reflections import ParsedFact, parse_reflection
from topicloom.roles.base import Answer, Reflected, ReflectRequest
from topicloom.roles.llm.dialogue import LLMRole
from topicloom.roles.llm.mending import clip, remark
from topicloom.state.facts import Claim

_FACT = 300
"""Characters of a fact: one sentence."""


class LLMReflector(LLMRole[ReflectRequest, Reflected]):
    """Reflects upon a stretch of conversation."""

    role = "reflector"

    def step(self, request: ReflectRequest) -> Step[Answer[Reflected]]:
        """Find the facts; numbers that no known fact has are dropped."""
        prompt = reflector_messages(
            request.records,
            request.facts,
            request.language,
            self._chat.counter,
            self._chat.limit,
        )
        asked = yield from self.ask(request, "reflector", prompt, parse_reflection, "reflection")
        claims = tuple(_claim(fact, request) for fact in asked.value)
        strangers = [
            f"f{n}" for fact in asked.value for n in fact.supersedes if not _known(n, request)
        ]
        remarks = remark(strangers, "fact is not known", "facts are not known")
        return Answer(Reflected(claims), asked.usage, asked.remarks + remarks)


def _claim(fact: ParsedFact, request: ReflectRequest) -> Claim:
    keys = tuple(request.facts[n - 1].key for n in fact.supersedes if _known(n, request))
    return Claim(clip(fact.text, _FACT), fact.messages, keys)


def _known(number: int, request: ReflectRequest) -> bool:
    return 1 <= number <= len(request.facts)
