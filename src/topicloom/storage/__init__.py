"""Internal: append-only chains over a narrow backend, in files or in a LangGraph store."""
