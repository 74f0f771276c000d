"""The history that a client sends along: which of its messages does the session know already?

Clients keep no ids, so a message is known by what it says. `docs/guides/serve.md` says how a chat
is found again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from topicloom.hosting import REMOVED, digest, get_text

_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)
_SPACE = re.compile(r"\s+")


def digest_histories(messages: Sequence[AnyMessage], before: str = "") -> list[str]:
    """Digests of a conversation's beginnings: the nth is that of its first n messages.

    `before` is the digest of what came before the first of them; "" if nothing did.
    """
    described = map(describe_message, messages)
    return list(accumulate(described, lambda known, one: digest([known, one]), initial=before))


def describe_message(message: AnyMessage) -> list[Any]:
    """What tells a message from others: the same when a client sends it again."""
    calls = [*getattr(message, "tool_calls", ()), *getattr(message, "invalid_tool_calls", ())]
    blocks = message.content if isinstance(message.content, list) else ()
    media = [b for b in blocks if isinstance(b, dict) and "text" not in b and message.type != "ai"]
    return [
        message.type,
        _SPACE.sub("", strip_thoughts(get_text(message))),
        [call["id"] for call in calls],
        getattr(message, "tool_call_id", ""),
        json.dumps(media, sort_keys=True, default=str),
    ]


def strip_thoughts(text: str) -> str:
    """The text of a message without a model's thoughts, which clients leave out or fold away.

    The search ends at the last closing tag, so that tags that are left open cost no time.
    """
    end = text.rfind("</think>") + len("</think>")
    return _THOUGHTS.sub("", text[:end]) + text[end:]


def is_sent_again(stored: AnyMessage, sent: AnyMessage) -> bool:
    """True if a client sends a stored message again; it may not know that it was purged."""
    return get_text(stored) == REMOVED or describe_message(stored) == describe_message(sent)


def list_sent(shown: Iterable[AnyMessage]) -> Iterator[tuple[AnyMessage, AnyMessage]]:
    """The two forms in which a client may have each message.

    They differ for a reply behind calls of tools: the client has its last part, or all that was
    streamed.
    """
    for by_user, group in groupby(shown, lambda m: isinstance(m, HumanMessage)):
        messages = list(group)
        if by_user:
            yield from zip(messages, messages, strict=True)
        else:
            text = "".join(get_text(m) for m in messages if isinstance(m, AIMessage))
            yield messages[-1], messages[-1].model_copy(update={"content": text})


def are_sent_again(
    sent: Sequence[tuple[AnyMessage, AnyMessage]], history: Sequence[AnyMessage]
) -> bool:
    """True if a client sends again just the messages that it was sent."""
    return len(sent) == len(history) and all(
        any(is_sent_again(reply, again) for reply in replies)
        for replies, again in zip(sent, history, strict=True)
    )


def is_part(message: AnyMessage, reply: AnyMessage) -> bool:
    """True if a message contains only the text or only the calls of a reply.

    A client may name one item of a reply by its id and write the others out.
    """
    if not (isinstance(message, AIMessage) and isinstance(reply, AIMessage)):
        return False
    calls = {c["id"] for c in (*message.tool_calls, *message.invalid_tool_calls)}
    whole = {c["id"] for c in (*reply.tool_calls, *reply.invalid_tool_calls)}
    return bool(whole) and calls <= whole and get_text(message) in ("", get_text(reply))


def find_ends(messages: Sequence[AnyMessage]) -> list[int]:
    """The lengths of the histories that end with a reply."""
    return [n for n, message in enumerate(messages, 1) if isinstance(message, AIMessage)]
