"""Context strategies side by side: each hears a conversation and lays out prompts."""

from __future__ import annotations

from topicloom_lab.strategies.base import Context, Strategy, StrategyOptions
from topicloom_lab.strategies.catalogue import STRATEGIES, StrategyEntry

__all__ = ["STRATEGIES", "Context", "Strategy", "StrategyEntry", "StrategyOptions"]
