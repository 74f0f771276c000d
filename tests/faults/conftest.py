"""Faults are tried with an encoder that needs no loading."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def light() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOPICLOOM_EMBEDDER", "hashing")
        yield
