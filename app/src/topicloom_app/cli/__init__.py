"""Internal: the command line, what belongs together in one file."""

from __future__ import annotations

from topicloom_app.cli.program import main

__all__ = ["main"]
