"""Internal: the review of a session, which sums up, merges and archives its topics."""
