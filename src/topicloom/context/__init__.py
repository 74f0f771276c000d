"""Internal: how prompts are laid out, and what they cost in tokens."""
