"""Fixtures of the command line's tests."""

from __future__ import annotations

from command_line import recording, run

__all__ = ["recording", "run"]
