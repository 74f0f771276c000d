"""What examples of whole sessions are drawn from."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings


def more(count: int) -> int:
    """So many, or as many times as many as the environment says in `TOPICLOOM_EXAMPLES`."""
    return count * int(os.environ.get("TOPICLOOM_EXAMPLES", "1"))


def scaled(count: int) -> int:
    """So many, or of them the share that hypothesis draws here of its hundred examples."""
    return max(1, count * settings().max_examples // 100)


def few(examples: int = 3) -> settings:
    """Few examples, a tenth of what others have at most, or `more`."""
    return settings(
        max_examples=more(min(examples, settings().max_examples // 10)),
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


FEW = few()
TAGS = ["茶", "雨", "山", "海"]
_numbers = itertools.count()


def fresh(folder: Path) -> Path:
    """A folder of its own for each example."""
    return folder / str(next(_numbers))


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}，晴。"
