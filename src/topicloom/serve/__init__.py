"""Internal: an endpoint that speaks OpenAI's protocol, over a session graph."""
