"""Internal: recorded conversations, and feeding them to a session graph."""
