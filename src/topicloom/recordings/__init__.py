"""Recorded conversations: reading them, and feeding them to a session graph."""
