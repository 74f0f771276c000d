"""The chains of a session; those of topics are named by `Topic.chain`."""

from __future__ import annotations

TRANSCRIPT = "transcript"
"""Every message, in order."""
ROSTER = "roster"
"""Topics; a later row of a topic replaces the earlier ones."""
LEDGER = "ledger"
"""Recall notes."""
TIMELINE = "timeline"
"""Which topic had messages on which day."""
TURNS = "turns"
"""Receipts."""
EDITS = "edits"
"""Edits of the application's document."""
