"""The command line: `topicloom chat`, `topicloom replay` and what looks into sessions."""

from __future__ import annotations

from topicloom.cli.app import main

__all__ = ["main"]
