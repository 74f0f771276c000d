"""Exports of other chats, as far as their formats are known, with all that is in real ones."""

from __future__ import annotations

from typing import Any

Node = dict[str, Any]


def node(
    name: str, parent: str | None, role: str, *parts: Any, time: float | None = None, **rest: Any
) -> Node:
    """A node of ChatGPT's tree; `kind`, `hidden` and `recipient` of its message may be given."""
    content = {"content_type": rest.get("kind", "text"), "parts": list(parts)}
    message = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": time,
        "content": content,
        "metadata": {"is_visually_hidden_from_conversation": rest.get("hidden", False)},
        "recipient": rest.get("recipient", "all"),
    }
    return {"id": name, "parent": parent, "children": [], "message": message}


def chatgpt(*nodes: Node, id: str = "c1", current: str | None = None, **rest: Any) -> Node:
    """A conversation of ChatGPT's, with an empty root."""
    root: Node = {"id": "root", "parent": None, "children": [], "message": None}
    mapping = {n["id"]: n for n in (root, *nodes)}
    return {
        "title": f"About {id}",
        "create_time": 1.0,
        "mapping": mapping,
        "current_node": current or nodes[-1]["id"],
        "conversation_id": id,
        "id": id,
        **rest,
    }


MIXED = chatgpt(
    node("sys", "root", "system", "", hidden=True),
    node("mine", "sys", "user", "I am a baker.", kind="user_editable_context", hidden=True),
    node("q1", "mine", "user", "茶：哪种茶？", time=1_700_000_000.5),
    node("a1-old", "q1", "assistant", "Black.", time=1_700_000_001.0),
    node("a1", "q1", "assistant", "Green", "tea.", time=1_700_000_002.0),
    node(
        "q2",
        "a1",
        "user",
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f1"},
        "And this?",
        time=1_700_000_003.0,
        kind="multimodal_text",
    ),
    node("think", "q2", "assistant", kind="thoughts"),
    node("call", "think", "assistant", "search('tea')", kind="code", recipient="browser"),
    node("result", "call", "tool", "tea is tea", kind="tether_quote"),
    node("a2", "result", "assistant", "A cup.", time=1_700_000_004.0),
)
"""A conversation of ChatGPT's with a branch, instructions, an image and a tool."""

CLAUDE: Node = {
    "uuid": "u1",
    "name": "On rain",
    "created_at": "2026-01-02T03:04:05.678901Z",
    "chat_messages": [
        {
            "uuid": "h1",
            "sender": "human",
            "text": "Rain?",
            "content": [{"type": "text", "text": "Rain?"}],
            "created_at": "2026-01-02T03:04:05.678901Z",
            "attachments": [{"file_name": "notes.txt", "extracted_content": "It rains."}],
            "files": [{"file_name": "sky.png"}],
        },
        {
            "uuid": "r1",
            "sender": "assistant",
            "text": "This block is not supported.",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "tool_use", "name": "weather", "input": {}},
                {"type": "tool_result", "content": []},
                {"type": "text", "text": "Yes."},
                {"type": "text", "text": "Take a coat."},
            ],
            "created_at": "2026-01-02T03:04:09Z",
        },
        {"uuid": "h2", "sender": "human", "text": "An old form", "attachments": [], "files": []},
        {"uuid": "r2", "sender": "assistant", "text": "", "content": []},
    ],
}
"""A conversation of Claude's with an attachment, thoughts, a tool, and an older kind of message."""
