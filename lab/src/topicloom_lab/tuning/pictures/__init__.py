"""Pictures of a turn log."""
