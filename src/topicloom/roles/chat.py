"""A chat model that plays a role: its window, and the cost of its calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from topicloom.context.prefix import PrefixMeter
from topicloom.context.token_count import TokenCounter
from topicloom.context.tokens import CachedTokenCounter, choose_counter
from topicloom.context.windows import PromptWindow
from topicloom.prompts.loader import Prompts
from topicloom.roles.base import Usage
from topicloom.roles.models import get_model_name, get_window_size
from topicloom.roles.servers import Server, find_server
from topicloom.state.stored_message import get_text

_WINDOW = 128_000
"""Tokens of the window of a model that nothing is known about."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat model with what is needed to fill its window and to account for it."""

    model: BaseChatModel
    counter: TokenCounter
    meter: PrefixMeter
    """Compares prompts; one for all roles of a process."""
    window: int
    """Tokens of the model's window, as set."""
    deadline: float | None = None
    """Seconds after which a turn goes on without an answer; None for no limit."""
    prompts: Prompts = field(default_factory=Prompts)
    answer: int | None = None
    """Tokens of an answer at most; None for what the model's client has set."""
    server: Server = field(default_factory=Server)

    @classmethod
    def of(
        cls,
        model: BaseChatModel,
        meter: PrefixMeter,
        *,
        window: int | None = None,
        deadline: float | None = None,
        prompts: Prompts | None = None,
        answer: int | None = None,
    ) -> Self:
        """A model with a counter for its tokenizer; its window by its profile if not given."""
        counter = CachedTokenCounter(choose_counter(get_model_name(model)))
        size, prompts = window or get_window_size(model, _WINDOW), prompts or Prompts()
        return cls(model, counter, meter, size, deadline, prompts, answer, find_server(model))

    @property
    def name(self) -> str:
        """The model's name, for receipts."""
        return get_model_name(self.model)

    @property
    def size(self) -> int:
        """Tokens of the window, as far as its server takes them."""
        return min(self.window, self.server.context or self.window)

    @property
    def prompt_window(self) -> PromptWindow:
        """The window as tokens are counted, without room for an answer."""
        return PromptWindow.of(self.size, self.counter, self.prompts)

    def usage(
        self, session: str, window: str, prompt: Sequence[BaseMessage], answer: AIMessage
    ) -> Usage:
        """The cost of a call in a window of a session: as reported, else as counted."""
        repeated = self.meter.measure(session, window, prompt, self.counter.message)
        reported = answer.usage_metadata
        if reported is None:
            counted = sum(map(self.counter.message, prompt))
            said = self.counter.text(get_text(answer))
            return Usage(self.name, counted, said, repeated=repeated)
        cached = reported.get("input_token_details", {}).get("cache_read") or 0
        return Usage(
            self.name, reported["input_tokens"], reported["output_tokens"], cached, repeated
        )


def sum_usage(first: Usage, second: Usage) -> Usage:
    """The cost of two calls of one model together."""
    tokens = first.input_tokens + second.input_tokens
    repeated = sum(u.input_tokens * (u.repeated or 0.0) for u in (first, second))
    return Usage(
        first.model,
        tokens,
        first.output_tokens + second.output_tokens,
        first.cached_tokens + second.cached_tokens,
        repeated / tokens if tokens else 0.0,
    )
