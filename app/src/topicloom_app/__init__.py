"""The application of topicloom: its command, its page, its endpoint, MCP, and recordings of other
chats.

Recorded conversations
    Reading them, and feeding them to a session.
    Conversation RecordedMessage RecordedRound load_conversations find_sample
    cut_rounds replay_conversation feed_round RecordedResponder
An endpoint
    A session graph for clients of OpenAI's and Anthropic's protocols, as `topicloom serve` has it.
    make_endpoint
Other programs
    Memory for clients of the Model Context Protocol, and topics as files beside other memories.
    make_mcp_server MemoryFiles MemoryReport
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
