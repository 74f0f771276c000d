"""What calls of models cost."""

from __future__ import annotations

from typing import Protocol

from topicloom.state.receipt import Prices


class Spent(Protocol):
    """What a call used."""

    @property
    def model(self) -> str: ...
    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def cached_tokens(self) -> int: ...


def find_price(role: str, model: str, prices: Prices) -> tuple[float, float, float] | None:
    """The price of a role or a model, with its provider or without; None if there is none."""
    by_model = (found for name, found in prices.items() if model in (name, name.partition(":")[2]))
    return prices.get(role) or next(by_model, None)


def price_usage(role: str, spent: Spent, prices: Prices) -> float | None:
    """What a call of a role cost, in the currency of the prices; None where there is none."""
    price = find_price(role, spent.model, prices)
    if price is None:
        return None
    tokens = (spent.input_tokens - spent.cached_tokens, spent.cached_tokens, spent.output_tokens)
    return sum(each * count for each, count in zip(price, tokens, strict=True)) / 1e6
