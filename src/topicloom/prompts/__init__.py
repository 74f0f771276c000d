"""Internal: the prompts, their fixed words, and lists of cue phrases."""
