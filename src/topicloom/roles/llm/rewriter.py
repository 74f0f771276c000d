"""The gateway as a chat model: it resolves what a message refers to."""

from __future__ import annotations

from topicloom.context.asking import rewriter_messages
from topicloom.effects import Step
from topicloom.prompts.parsers import parse_query
from topicloom.roles.base import Answer, RewriteRequest
from topicloom.roles.llm.dialogue import LLMRole


class LLMRewriter(LLMRole[RewriteRequest, str]):
    """Rewrites a message so that it stands by itself."""

    role = "rewriter"

    def step(self, request: RewriteRequest) -> Step[Answer[str]]:
        """Rewrite the message."""
        prompt = rewriter_messages(
            request.text, request.tail, request.language, self._chat.counter, self._chat.limit
        )
        asked = yield from self.ask(request, "rewriter", prompt, parse_query, "query")
        return Answer(asked.value, asked.usage, asked.remarks)
