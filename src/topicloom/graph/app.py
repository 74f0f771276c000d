"""Where `topicloom.app` was in 0.1.0, for the `langgraph.json` of applications that name it."""

from topicloom.app import graph, open_checkpointer, open_store

__all__ = ["graph", "open_checkpointer", "open_store"]
