"""What calls cost, by the prices of models and roles."""

from __future__ import annotations

import pytest
from tables import each_row

from topicloom import Call, ConfigurationError, Settings
from topicloom.hosting import Prices
from topicloom_app.prices import price_call

CALL = Call(
    role="reader",
    model="gpt-5-mini",
    input_tokens=1_000_000,
    cached_tokens=400_000,
    output_tokens=10_000,
)


@each_row(
    ("prices", "cost"),
    [
        ({}, None),
        ({"gpt-5": (1, 1, 1)}, None),
        ({"gpt-5-mini": (0.25, 0.025, 2)}, 0.15 + 0.01 + 0.02),
        ({"openai:gpt-5-mini": (0.25, 0.025, 2)}, 0.18),
        ({"gpt-5-mini": (1, 1, 1), "reader": (0, 0, 100)}, 1),
    ],
)
def test_a_call_costs_what_its_model_or_role_does(prices: Prices, cost: float | None) -> None:
    assert price_call(CALL, prices) == pytest.approx(cost)


def test_prices_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICLOOM_PRICES", '{"qwen3:8b": [1, 0.1, 2]}')
    prices = Settings().prices
    assert price_call(CALL.model_copy(update={"model": "qwen3:8b"}), prices) == pytest.approx(0.66)
    with pytest.raises(ConfigurationError, match="prices"):
        Settings(prices={"gpt-5": (1, -1, 1)})
