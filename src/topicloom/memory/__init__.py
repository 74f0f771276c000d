"""Internal: what is done with a session from outside: read, change, purge, repair, review."""
