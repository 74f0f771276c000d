"""What calls of models cost."""

from __future__ import annotations

from topicloom.state.receipt import Call, Prices


def find_price(role: str, model: str, prices: Prices) -> tuple[float, float, float] | None:
    """The price of a role or a model, with its provider or without; None if there is none."""
    by_model = (found for name, found in prices.items() if model in (name, name.partition(":")[2]))
    return prices.get(role) or next(by_model, None)


def price_call(call: Call, prices: Prices) -> float | None:
    """What a call cost, in the currency of the prices; None where there is none for it."""
    price = find_price(call.role, call.model, prices)
    if price is None:
        return None
    tokens = (call.input_tokens - call.cached_tokens, call.cached_tokens, call.output_tokens)
    return sum(each * count for each, count in zip(price, tokens, strict=True)) / 1e6
