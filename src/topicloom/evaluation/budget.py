"""The evaluation's own measure of tokens, as a counter."""

from __future__ import annotations

import json
from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from topicloom.context.token_messages import ToolLike
from topicloom.context.tokens import budget_tokens
from topicloom.state.records import text_of


class BudgetCounter:
    """Counts as the published figures do: a CJK character, or four others, is a token."""

    def text(self, text: str) -> int:
        """See `TokenCounter.text`."""
        return budget_tokens(text)

    def message(self, message: BaseMessage) -> int:
        """See `TokenCounter.message`."""
        return budget_tokens(f"{message.name or message.type}: {text_of(message)}")

    def tools(self, tools: Sequence[ToolLike]) -> int:
        """See `TokenCounter.tools`."""
        return sum(budget_tokens(json.dumps(convert_to_openai_tool(t))) for t in tools)
