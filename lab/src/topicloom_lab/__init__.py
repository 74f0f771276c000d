"""The laboratory of topicloom: measuring it, comparing it, and training its small models."""
