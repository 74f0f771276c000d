"""Conversations as trees of messages, `mapping`, as ChatGPT and DeepSeek export them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from topicloom_app.recordings.exported import ExportedConversation
from topicloom_app.recordings.formats.base import Source, Tell, read_branches

_TREE = "mapping"


def list_messages(entry: Any) -> list[Any] | None:
    """The messages of an entry that is such a tree; None if it is none."""
    if not (isinstance(entry, dict) and isinstance(entry.get(_TREE), dict)):
        return None
    nodes = entry[_TREE].values()
    return [n["message"] for n in nodes if isinstance(n, dict) and n.get("message")]


def read_tree(
    value: Mapping[str, Any],
    conversation: ExportedConversation,
    source: Source,
    tell: Tell,
    *,
    time: str,
) -> Iterator[ExportedConversation]:
    """The conversation of a tree, and its branches; as `read_branches` has it."""
    nodes: Mapping[str, Any] = value[_TREE]
    parents = {name: node.get("parent") for name, node in nodes.items()}
    said = {name: node.get("message") or {} for name, node in nodes.items()}
    leaf = value.get("current_node")
    return read_branches(said, parents, conversation, source, tell, time=time, leaf=leaf)
