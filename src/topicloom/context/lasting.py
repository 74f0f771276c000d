"""Messages of a prompt that say: up to here it stays as it is for many turns."""

from __future__ import annotations

from langchain_core.messages import BaseMessage, HumanMessage

_KEY = "topicloom_lasting"


def lasting(text: str) -> HumanMessage:
    """The last message of a part that seldom changes, before one that often does.

    The mark is for `roles/llm/caches.py`; no provider is sent it.
    """
    return HumanMessage(text, additional_kwargs={_KEY: True})


def lasts(message: BaseMessage) -> bool:
    """Whether a message ends such a part."""
    return _KEY in message.additional_kwargs
