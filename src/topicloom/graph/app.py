"""The graph as a LangGraph server takes it: compiled, without checkpointer or store.

The server brings its own checkpointer; settings come from `TOPICLOOM_*`.
"""

from __future__ import annotations

from topicloom.graph.session import build_session_graph

graph = build_session_graph().compile()
