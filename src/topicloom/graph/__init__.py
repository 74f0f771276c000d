"""Internal: which node follows which, and the collaborators made from the settings."""
