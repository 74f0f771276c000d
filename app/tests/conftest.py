"""Lends the server of `tests/support` to any test."""

from __future__ import annotations

from openai_server import openai_server

__all__ = ["openai_server"]
