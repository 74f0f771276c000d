"""What calls of models cost."""

from __future__ import annotations

from topicloom import Call
from topicloom.hosting import Prices, price_usage


def price_call(call: Call, prices: Prices) -> float | None:
    """What a call cost, in the currency of the prices; None where there is none for it."""
    return price_usage(call.role, call, prices)
