"""Internal: the data of a session, and the pure decisions over it."""
