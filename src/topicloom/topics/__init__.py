"""Internal: the semantic boundary adsorber, which decides where a topic begins."""
