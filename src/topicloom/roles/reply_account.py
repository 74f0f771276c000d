"""The account of a reply: what it cost, and what that says of our estimates of tokens."""

from __future__ import annotations

import time
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage

from topicloom.context.prefix import PrefixMeter
from topicloom.context.token_count import TokenCounter
from topicloom.roles.models import get_usage
from topicloom.state.receipt import Call
from topicloom.state.session import Session


def account_reply(
    meter: PrefixMeter,
    counter: TokenCounter,
    session: Session,
    model: str,
    sent: Sequence[BaseMessage],
    message: AIMessage,
    size: int,
    tools: int = 0,
    *,
    began: float,
) -> tuple[Session, Call]:
    """The session, with its estimates calibrated by the provider's report, and the cost of a reply.

    `size` and `tools` are the estimated tokens of the prompt that was sent and of its tools; the
    reply `began` at a time of `time.monotonic`.
    """
    took, usage = round(time.monotonic() - began, 4), get_usage(message)
    details = usage.get("input_token_details", {}) if usage else {}
    correction = session.correction.observe(size + tools, usage["input_tokens"] if usage else 0)
    return session.model_copy(update={"correction": correction}), Call(
        role="responder",
        model=model,
        began=round(time.time() - took, 4),
        seconds=took,
        input_tokens=usage["input_tokens"] if usage else size,
        output_tokens=usage["output_tokens"] if usage else counter.message(message),
        cached_tokens=details.get("cache_read") or 0,
        repeated=meter.measure(session.id, "main", sent, counter.message),
    )
