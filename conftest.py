"""No test asserts a time, those of hypothesis included: a busy machine is no defect.

No test reaches out either: connections to anywhere but this machine fail, and so does the test.
Those of a real model, which downloads it, may.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile(
    "untimed", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("untimed")

_HERE = {"", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::"}
_reached_out: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    if config.option.markexpr != "real_model":
        sys.addaudithook(_stay_here)


@pytest.fixture(autouse=True)
def _nobody_reaches_out() -> Iterator[None]:
    yield
    reached, _reached_out[:] = list(_reached_out), []
    assert not reached, f"connections to {reached}"


def _stay_here(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: what is about to be looked up or connected to has to be on this machine."""
    host = None
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    name = host.decode() if isinstance(host, bytes) else host
    if name is not None and name not in _HERE:
        _reached_out.append(str(name))
        raise ConnectionRefusedError(f"a test may not reach out to {name}")
