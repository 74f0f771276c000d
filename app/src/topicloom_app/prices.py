"""What calls of models cost."""

from __future__ import annotations

from topicloom import Call
from topicloom.hosting import Prices


def price_call(call: Call, prices: Prices) -> float | None:
    """What a call cost, in the currency of the prices; None where there is none for it."""
    by_model = (
        found for name, found in prices.items() if call.model in (name, name.partition(":")[2])
    )
    price = prices.get(call.role) or next(by_model, None)
    if price is None:
        return None
    tokens = (call.input_tokens - call.cached_tokens, call.cached_tokens, call.output_tokens)
    return sum(each * count for each, count in zip(price, tokens, strict=True)) / 1e6
