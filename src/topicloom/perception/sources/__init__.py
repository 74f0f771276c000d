"""Where a curation finds its candidates: lore, narrative, events and topics (spec 004, 6.2)."""
