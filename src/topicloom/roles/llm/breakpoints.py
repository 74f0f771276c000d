"""Where a prompt may be cached, said to providers that want to be told.

Anthropic caches only up to blocks that carry `cache_control`, at most four of them, and finds what
was written up to 20 blocks before one. OpenAI, from GPT-5.6 on, finds what ends where an earlier
prompt ended, or at one of the last three blocks that carry `prompt_cache_breakpoint`. Prompts here
grow at their end, and now and then past the end of a part that lasts; so three marks do: the
system message, with the tools that go before it, the end of such a part, and the newest message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from topicloom.context.lasting import lasts
from topicloom.roles.models import name_of
from topicloom.state.records import text_of


@dataclass(frozen=True, slots=True)
class _Mark:
    """How a provider is told."""

    block: dict[str, Any]
    """What is added to a block."""
    newest: bool
    """Whether the newest message needs a mark, too."""


_ANTHROPIC = _Mark({"cache_control": {"type": "ephemeral"}}, newest=True)
_OPENAI = _Mark({"prompt_cache_breakpoint": {"mode": "explicit"}}, newest=False)
_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?!\d)")
_SINCE = (5, 6)
"""The first GPT that takes marks; older ones refuse them."""


def marked(messages: Sequence[BaseMessage], model: BaseChatModel) -> list[BaseMessage]:
    """A prompt as it is sent to a model: with marks if its provider wants them, else as it is.

    Args:
        messages: The prompt; not changed.
        model: Who it goes to.
    """
    mark = _mark_of(model)
    if mark is None:
        return list(messages)
    places = breakpoints(messages)
    chosen = set(places if mark.newest else places[:-1])
    return [_marked(m, mark.block) if n in chosen else m for n, m in enumerate(messages, start=1)]


def breakpoints(messages: Sequence[BaseMessage]) -> list[int]:
    """After how many leading messages a prompt may be cached, ascending; at most three.

    A mark on an empty text is an error, so a message without text has none.
    """
    spoken = [n for n, m in enumerate(messages, start=1) if text_of(m).strip()]
    system = [n for n in spoken if messages[n - 1].type == "system"]
    lasting = [n for n in spoken if lasts(messages[n - 1])]
    return sorted({*system[:1], *lasting[-1:], *spoken[-1:]})


def _mark_of(model: BaseChatModel) -> _Mark | None:
    """How to tell a model's provider, by the package that the class or a base of it is of."""
    packages = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    if "langchain_anthropic" in packages:
        return _ANTHROPIC
    return _OPENAI if "langchain_openai" in packages and _takes_marks(model) else None


def _takes_marks(model: BaseChatModel) -> bool:
    """Whether a model of OpenAI's package is served by OpenAI itself, and new enough."""
    client = getattr(model, "root_client", None)
    host = urlsplit(str(getattr(client, "base_url", ""))).hostname or ""
    found = _GPT.match(name_of(model))
    version = (int(found[1]), int(found[2] or 0)) if found else (0, 0)
    return version >= _SINCE and f".{host}".endswith(".api.openai.com")


def _marked(message: BaseMessage, mark: dict[str, Any]) -> BaseMessage:
    """A message whose last text carries the mark."""
    given = [message.content] if isinstance(message.content, str) else message.content
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": b} if isinstance(b, str) else dict(b) for b in given
    ]
    last = max(n for n, b in enumerate(blocks) if str(b.get("text", "")).strip())
    blocks[last] |= mark
    return message.model_copy(update={"content": blocks})
