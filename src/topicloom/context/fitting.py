"""A message within a limit, whatever it is made of, and all messages within theirs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage

from topicloom.context.transcript import is_text
from topicloom.state.stored_message import MEDIA, StoredMessage

Shorten = Callable[[str, int], str]
"""A text, or as much of it as so many tokens hold."""
Count = Callable[[str], int]
"""Tokens of a text."""
_LEAST_SHARE = 8
"""Tokens of a text in arguments, at the least of limits that are tried."""


def select_rest(stored: StoredMessage) -> AnyMessage:
    """A message of what is neither text nor media in another: calls, thoughts, other blocks."""
    rest = [b for b in stored.blocks if not (is_text(b) or str(b.get("type")) in MEDIA)]
    return stored.message.model_copy(update={"content": rest, "name": None})


def flatten(
    message: AnyMessage,
    said: str,
    media: Sequence[dict[str, Any]],
    limit: int,
    shorten: Shorten,
    count: Count,
) -> AnyMessage:
    """The message with this text, these media and its calls alone.

    These keep so much of their arguments as `limit` tokens hold, about.
    """
    update: dict[str, Any] = {"content": [{"type": "text", "text": said}, *media]}
    if isinstance(message, AIMessage):
        each = limit // max(1, len(message.tool_calls) + len(message.invalid_tool_calls))
        for field in ("tool_calls", "invalid_tool_calls"):
            update[field] = [
                {**call, "args": _shorten_arguments(call["args"], each, shorten, count)}
                for call in getattr(message, field)
            ]
    return message.model_copy(update=update if media else update | {"content": said})


def _shorten_arguments(args: Any, limit: int, shorten: Shorten, count: Count) -> Any:
    """Arguments with the long texts in them in part; else their JSON, in part."""

    def size(value: Any) -> int:
        return count(_to_json(value))

    share, best = limit, args
    while size(best) > limit and share >= _LEAST_SHARE:
        best, share = _shorten_texts(args, share, shorten), share // 2
    if size(best) > limit and isinstance(args, dict):
        best = {"arguments": shorten(_to_json(args), limit)}
    return min(args, best, key=size)


def _shorten_texts(value: Any, limit: int, shorten: Shorten) -> Any:
    if isinstance(value, str):
        return shorten(value, limit)
    if isinstance(value, Mapping):
        return {key: _shorten_texts(item, limit, shorten) for key, item in value.items()}
    if isinstance(value, list):
        return [_shorten_texts(item, limit, shorten) for item in value]
    return value


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class Fit:
    """How much is shown of the messages of a prompt, by how often their limits are halved."""

    view: int = 0
    """Of each message before the running turn's, but for the newest."""
    older: int = 0
    """Of each message of the running turn, but for the newest reply and its results."""
    newest: int = 0
    """Of each of these results."""
    last: int = 0
    """Of the newest message before them, which is to be answered."""
    left_view: int = 0
    """How many of the oldest rounds in view are left out."""
    left: int = 0
    """How many of the oldest calls of the running turn are left out, with their results."""


def list_fits(halvings: int, view: int, calls: int) -> list[Fit]:
    """Ways to fit messages, from all on, each smaller than the one before.

    There are few of them, so that a prompt that grows changes seldom: what tools said goes first,
    the newest last of it, then old calls as a whole, then what was said before, and last what is
    to be answered. The newest of `calls` and the newest round in `view` are shown in any case.
    """
    fits = [Fit(0, min(n, halvings), min(n // 2, halvings)) for n in range(2 * halvings + 1)]
    fits += [replace(fits[-1], left=n) for n in _double_up_to(calls - 1)]
    fits += [replace(fits[-1], view=n) for n in range(1, halvings + 1)]
    fits += [replace(fits[-1], left_view=n) for n in range(1, view)]
    return fits + [replace(fits[-1], last=n) for n in range(1, halvings + 1)]


def _double_up_to(most: int) -> list[int]:
    return [min(2**n, most) for n in range((most - 1).bit_length() + 1)] if most > 0 else []


def find_rounds(messages: Sequence[BaseMessage]) -> list[int]:
    """Where messages begin that go with their results, if there are any."""
    return [n for n, m in enumerate(messages) if n == 0 or not isinstance(m, ToolMessage)]
