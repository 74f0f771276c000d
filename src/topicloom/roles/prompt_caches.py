"""Hints to providers' prompt caches: where a prompt may be cached, and a key for its window.

Anthropic caches only up to blocks that carry `cache_control`, at most four of them, and finds what
was written up to 20 blocks before one. OpenAI has prompts with one `prompt_cache_key` handled by
one machine; from GPT-5.6 on it writes the end of the newest message and of up to three blocks that
carry `prompt_cache_breakpoint`, and finds only what was written so.

Prompts here grow at their end, and at times past the end of a part that stays. So three marks do:
the system message with the tools before it, the end of such a part, and the newest message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from topicloom.context.windows import PASSING, is_cache_point
from topicloom.roles.models import get_model_name
from topicloom.roles.servers import get_host
from topicloom.state.stored_message import get_text

_ANTHROPIC = {"cache_control": {"type": "ephemeral"}}
_OPENAI = {"prompt_cache_breakpoint": {"mode": "explicit"}}
_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?!\d)")
_SINCE = (5, 6)
"""The first GPT that takes marks; older ones refuse them."""


@dataclass(frozen=True, slots=True)
class CachedPrompt:
    """A prompt as it is sent."""

    messages: list[BaseMessage]
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the call."""


def with_cache_hints(
    messages: Sequence[BaseMessage], model: BaseChatModel, session: str, window: str
) -> CachedPrompt:
    """A prompt as it is sent to a model: with its provider's hints if there are any.

    OpenAI's key is made of the session and the name of a window in it, such as `reader:t3`.
    """
    places = find_breakpoints(messages)
    if comes_from("langchain_anthropic", model):
        return CachedPrompt(_mark_all(messages, places, _ANTHROPIC))
    if not (comes_from("langchain_openai", model) and get_host(model).endswith(".api.openai.com")):
        return CachedPrompt(list(messages))
    options: dict[str, Any] = {}
    if "prompt_cache_key" not in getattr(model, "model_kwargs", {}):
        named = f"{session}\n{window}".encode("utf-8", "surrogatepass")
        options["prompt_cache_key"] = f"topicloom-{blake2b(named, digest_size=16).hexdigest()}"
    if _parse_version(model) < _SINCE:
        return CachedPrompt(list(messages), options)
    chosen = getattr(model, "prompt_cache_options", None) or {}
    # Unless the application has said otherwise, OpenAI marks the newest message by itself.
    explicit = chosen.get("mode") == "explicit" or PASSING in messages[-1].additional_kwargs
    own = places if explicit else places[:-1]
    return CachedPrompt(_mark_all(messages, own, _OPENAI), options)


def find_breakpoints(messages: Sequence[BaseMessage]) -> list[int]:
    """After how many leading messages a prompt may be cached, ascending; at most three.

    A mark on an empty text is an error, so a message without text has none. Neither has a last
    message that is not repeated.
    """
    kept = [m for m in messages if PASSING not in m.additional_kwargs]
    spoken = [n for n, m in enumerate(kept, start=1) if get_text(m).strip()]
    system = [n for n in spoken if messages[n - 1].type == "system"]
    lasting = [n for n in spoken if is_cache_point(messages[n - 1])]
    return sorted({*system[:1], *lasting[-1:], *spoken[-1:]})


def comes_from(package: str, model: BaseChatModel) -> bool:
    """True if a model's class, or a base of it, comes from a package."""
    return any(kind.__module__.partition(".")[0] == package for kind in type(model).__mro__)


def _parse_version(model: BaseChatModel) -> tuple[int, int]:
    """A GPT's version; of any other model 0.0."""
    found = _GPT.match(get_model_name(model))
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _mark_all(
    messages: Sequence[BaseMessage], places: Sequence[int], mark: dict[str, Any]
) -> list[BaseMessage]:
    return [_mark(m, mark) if n in places else m for n, m in enumerate(messages, start=1)]


def _mark(message: BaseMessage, mark: dict[str, Any]) -> BaseMessage:
    """A message whose last text carries the mark."""
    given = [message.content] if isinstance(message.content, str) else message.content
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": b} if isinstance(b, str) else dict(b) for b in given
    ]
    last = max(n for n, b in enumerate(blocks) if str(b.get("text", "")).strip())
    blocks[last] |= mark
    return message.model_copy(update={"content": blocks})
