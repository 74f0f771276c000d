"""Internal: the command line, one command a file."""

from __future__ import annotations

from topicloom.cli.program import main

__all__ = ["main"]
