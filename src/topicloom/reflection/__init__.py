"""Internal: durable facts about the user, and when sessions are due for them."""
