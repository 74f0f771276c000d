"""Pictures of a turn log. Needs matplotlib (`topicloom[plots]`)."""
