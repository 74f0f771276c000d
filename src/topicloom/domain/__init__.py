"""Internal: an application's document, its edits, and the curation of what else to know."""
