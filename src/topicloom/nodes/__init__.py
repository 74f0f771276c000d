"""Internal: the steps of a turn, one a module."""
