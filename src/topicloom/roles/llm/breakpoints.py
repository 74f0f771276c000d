"""Where a prompt may be cached, said to providers that want to be told.

Anthropic caches only up to blocks that carry `cache_control`, at most four of them, and finds what
was written up to 20 blocks before one. Prompts here grow at their end, so two marks do: the system
message, with the tools that go before it, and the newest message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from topicloom.state.records import text_of

_MARK = {"cache_control": {"type": "ephemeral"}}
_PACKAGE = "langchain_anthropic"


def marked(messages: Sequence[BaseMessage], model: BaseChatModel) -> list[BaseMessage]:
    """A prompt as it is sent to a model: with marks for Anthropic's, else as it is.

    Args:
        messages: The prompt; not changed.
        model: Who it goes to.
    """
    if not wants_marks(model):
        return list(messages)
    places = set(breakpoints(messages))
    return [_marked(m) if n in places else m for n, m in enumerate(messages, start=1)]


def breakpoints(messages: Sequence[BaseMessage]) -> list[int]:
    """After how many leading messages a prompt may be cached, ascending.

    A mark on an empty text is an error, so a message without text has none.
    """
    spoken = [n for n, m in enumerate(messages, start=1) if text_of(m).strip()]
    system = [n for n in spoken if messages[n - 1].type == "system"]
    return sorted({*system[:1], *spoken[-1:]})


def wants_marks(model: BaseChatModel) -> bool:
    """Whether a model is one of Anthropic's, by where its class or a base of it comes from."""
    return any(kind.__module__.partition(".")[0] == _PACKAGE for kind in type(model).__mro__)


def _marked(message: BaseMessage) -> BaseMessage:
    """A message whose last text carries the mark."""
    given = [message.content] if isinstance(message.content, str) else message.content
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": b} if isinstance(b, str) else dict(b) for b in given
    ]
    last = max(n for n, b in enumerate(blocks) if str(b.get("text", "")).strip())
    blocks[last] |= _MARK
    return message.model_copy(update={"content": blocks})
