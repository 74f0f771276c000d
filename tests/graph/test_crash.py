"""kill -9 at random times of conversations: after a restart nothing is lost and nothing twice.

All of it: `python tests/faults kills --only conversation`.
"""

from __future__ import annotations

import os

import pytest
from faults.short import run_short

pytestmark = pytest.mark.long


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_conversations_lose_nothing() -> None:
    figures = run_short("kills", "--on", "files", "--only", "conversation", "--sample", "1")
    assert [of_one["kills"] for of_one in figures.values()] == [3] * 5
