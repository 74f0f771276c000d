"""Internal: the inspector, a page on which a conversation and its memory stand side by side."""
