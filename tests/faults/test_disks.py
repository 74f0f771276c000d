"""A disk that fails is said to; once it works, what failed is done again and nothing is lost.

All of it: `python tests/faults disk`.
"""

from __future__ import annotations

import os

import pytest
from faults.disks import can_mount
from faults.short import run_short

pytestmark = pytest.mark.long


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_disk_that_fails_under_some_writes_loses_nothing() -> None:
    figures = run_short("disk", "--only", "split", "--sample", "1")
    assert figures["disk/split/torn"]["killed"] == figures["disk/split/full"]["refused"] == 1
    if not can_mount():
        pytest.skip("SMALL FILE SYSTEMS ARE NOT TESTED: this process may not mount one")
