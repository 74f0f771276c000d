"""Messages that need no memory, and short ones that do."""
