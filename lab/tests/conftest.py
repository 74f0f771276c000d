"""Lends what `tests/support` has for the package to the laboratory's tests."""

from __future__ import annotations

from command_line import recording, run
from openai_server import openai_server

__all__ = ["openai_server", "recording", "run"]
