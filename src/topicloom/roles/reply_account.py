"""The account of a reply: what it cost, and what that says of our estimates of tokens."""

from __future__ import annotations

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
) -> tuple[Session, Call]:
    """The session, with its estimates calibrated by the provider's report, and the cost of a reply.

    Args:
        meter: Knows the prompts before this one.
        counter: Counts what is not reported.
        session: The session.
        model: The model's name.
        sent: The prompt.
        message: The reply.
        size: Tokens of the prompt as estimated.
        tools: Tokens of the tools that were sent with it.
    """
    usage = get_usage(message)
    details = usage.get("input_token_details", {}) if usage else {}
    correction = session.correction.observe(size + tools, usage["input_tokens"] if usage else 0)
    return session.model_copy(update={"correction": correction}), Call(
        role="responder",
        model=model,
        input_tokens=usage["input_tokens"] if usage else size,
        output_tokens=usage["output_tokens"] if usage else counter.message(message),
        cached_tokens=details.get("cache_read") or 0,
        repeated=meter.measure(session.id, "main", sent, counter.message),
    )
