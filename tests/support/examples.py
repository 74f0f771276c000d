"""What examples of whole sessions are drawn from."""

from __future__ import annotations

import itertools
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings

FEW = settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TAGS = ["茶", "雨", "山", "海"]
_numbers = itertools.count()


def fresh(folder: Path) -> Path:
    """A folder of its own for each example."""
    return folder / str(next(_numbers))


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}，晴。"
