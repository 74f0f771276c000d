"""Faults are tried with an encoder that needs no loading, in a sample the same each time."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def light() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOPICLOOM_EMBEDDER", "hashing")
        yield


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest) -> None:
    """The same faults each time in a sample, others each time in all."""
    if request.config.option.sample:
        random.seed(0)
