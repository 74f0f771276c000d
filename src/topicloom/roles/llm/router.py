"""The router as a chat model: it finds topics by their briefs."""

from __future__ import annotations

from topicloom.context.asking import router_messages
from topicloom.effects import Step
from topicloom.prompts.parsers import parse_routing
from topicloom.roles.base import Answer, Route, RouteRequest
from topicloom.roles.llm.dialogue import LLMRole
from topicloom.roles.llm.mending import clip, remark

_REASON = 300
"""Characters of a reason."""


class LLMRouter(LLMRole[RouteRequest, Route]):
    """Searches the index window."""

    role = "router"

    def step(self, request: RouteRequest) -> Step[Answer[Route]]:
        """Find the topics; ids that are no candidates are dropped."""
        prompt = router_messages(
            request.query,
            request.when,
            request.tail,
            request.topics,
            request.language,
            self._chat.counter,
            self._chat.limit,
        )
        asked = yield from self.ask(request, "router", prompt, parse_routing, "topic_routing")
        candidates = {t.id for t in request.topics}
        relevance = {t: v for t, v in asked.value.relevance.items() if t in candidates}
        strangers = [t for t in asked.value.relevance if t not in candidates]
        remarks = remark(strangers, "topic is no candidate", "topics are no candidates")
        route = Route(relevance, clip(asked.value.reason, _REASON))
        return Answer(route, asked.usage, asked.remarks + remarks)
