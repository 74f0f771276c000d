"""Content blocks of messages: which hold text, which media, which a model's own working.

Providers have many types, and add new ones. What is asked here is asked of the form of a block: a
block with a text in it is text, and one with bytes in it is media, whatever its type is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from langchain_core.messages import HumanMessage

Block = dict[str, Any]
"""A content block."""
MediaKind = Literal["image", "audio", "video", "file"]
MEDIA_KINDS: tuple[MediaKind, ...] = get_args(MediaKind)

_MEDIA_TYPES: Mapping[str, MediaKind] = {
    **dict.fromkeys(("image", "image_url", "input_image", "image_generation_call"), "image"),
    **dict.fromkeys(("audio", "audio_url", "input_audio"), "audio"),
    **dict.fromkeys(("video", "video_url", "input_video"), "video"),
    **dict.fromkeys(("file", "input_file", "document", "document_url", "text-plain"), "file"),
}
"""Types of content blocks that hold media, or refer to them."""
CALLS = frozenset({"tool_use", "tool_call", "tool_call_chunk", "function_call", "input_json_delta"})
"""Types of content blocks that stand for a tool call."""
COMPACTION = "compaction"
"""Type of the block in which a provider keeps its own summary of what came before."""
THOUGHTS = frozenset(
    {"reasoning", "thinking", "reasoning_content", "redacted_thinking", COMPACTION}
)
"""Types of content blocks that a model wrote for itself, before its reply."""
REFUSAL = "refusal"
"""Type of the content block in which a model says that it will not answer, and its key."""

_BYTES = ("data", "base64", "bytes", "file_data")
"""Keys under which bytes stand, as base64."""
_DEEP = 3
"""Levels of a block that are looked through for bytes."""


def get_block_text(block: str | Block) -> str:
    """The text of a content block of any kind; "" if it has none.

    A document with a text in it, as Anthropic has them, is text too, below its title.
    """
    if isinstance(block, str):
        return block
    text = block.get(REFUSAL if block.get("type") == REFUSAL else "text")
    return text if isinstance(text, str) else _get_source_text(block)


def _get_source_text(block: Block) -> str:
    """The text of a document, or of a search result, that has its text in a source."""
    source, kind = block.get("source"), block.get("type")
    inner: object = None
    if kind == "search_result":
        inner = block.get("content")
    elif kind == "document" and isinstance(source, Mapping):
        inner = source.get("data" if source.get("type") == "text" else "content")
    parts = inner if isinstance(inner, list) else [inner]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    if not texts or not all(isinstance(text, str) for text in texts):
        return ""
    heads = (block.get("title"), block.get("context"))
    return "\n".join([t for t in heads if isinstance(t, str)] + [str(t) for t in texts])


def is_text(block: str | Block) -> bool:
    """True for a content block whose text is part of its message's."""
    return isinstance(block, str) or block.get("type") == "text" or bool(get_block_text(block))


def get_media_kind(block: Block) -> MediaKind | None:
    """The kind of media that a content block holds; None for one that holds none."""
    kind = str(block.get("type"))
    if kind in _OTHER_TYPES or is_text(block):
        return None
    if kind in _MEDIA_TYPES:
        return _MEDIA_TYPES[kind]
    found = _find_bytes(block, _DEEP)
    if found is None and kind != "media":  # which may be a reference
        return None
    return _name_kind(found or _get_media_type(block))


_OTHER_TYPES = CALLS | THOUGHTS | {"text", REFUSAL}


def _find_bytes(value: Mapping[str, Any], levels: int) -> str | None:
    """The media type of the bytes in a block, "" if it has none, None where there are no bytes."""
    named = _get_media_type(value)
    for key, item in value.items():
        if isinstance(item, str):
            if item.startswith("data:") and "," in item[:200]:
                return item[len("data:") :].split(",")[0]
            if key in _BYTES and named and item:
                return named
        elif isinstance(item, Mapping) and levels > 1:
            found = _find_bytes(item, levels - 1)
            if found is not None:
                return found
    return None


def _get_media_type(block: Mapping[str, Any]) -> str:
    names = (block.get(key) for key in ("mime_type", "media_type", "mimeType"))
    return next((name for name in names if isinstance(name, str)), "")


def _name_kind(media_type: str) -> MediaKind:
    kinds: Sequence[MediaKind] = ("image", "audio", "video")
    return next((kind for kind in kinds if media_type.startswith(f"{kind}/")), "file")


def is_broken(block: Block) -> bool:
    """True for a block of LangChain's older form that its chat models cannot read.

    It lacks its data, or another part of it, and any prompt that holds it raises an error.
    """
    if "source_type" not in block:
        return False
    try:
        return not HumanMessage([block]).content_blocks
    except (KeyError, TypeError, ValueError):
        return True


def give_back(block: Block) -> Block:
    """A medium as a user gives it: an image that a model made is named by an id in its reply."""
    made = block.get("result")
    if block.get("type") == "image_generation_call" and isinstance(made, str):
        return {"type": "image", "base64": made, "mime_type": "image/png"}
    return block
