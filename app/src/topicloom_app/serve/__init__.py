"""Internal: an endpoint that speaks OpenAI's and Anthropic's protocols, over a session graph."""
