"""Context strategies side by side: each hears a conversation and lays out prompts."""

from topicloom.evaluation.strategies.base import Context, Desk, Strategy
from topicloom.evaluation.strategies.catalogue import STRATEGIES, Recipe

__all__ = ["STRATEGIES", "Context", "Desk", "Recipe", "Strategy"]
