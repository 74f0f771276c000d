"""Context strategies side by side: each hears a conversation and lays out prompts."""

from __future__ import annotations

from topicloom_lab.strategies.base import Context, Desk, Strategy
from topicloom_lab.strategies.catalogue import STRATEGIES, Recipe

__all__ = ["STRATEGIES", "Context", "Desk", "Recipe", "Strategy"]
