"""Puts `tests/support` on the import path and lends its server to any test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))

from openai_server import OpenAIServer


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """Run a scripted model server; tell it what to do with `then` and `otherwise`."""
    with OpenAIServer() as server:
        yield server
