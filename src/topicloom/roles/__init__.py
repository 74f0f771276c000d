"""Internal: what a model does here, one role a file, and the registry of all."""
