"""ChatGPT: `conversations.json`, or `conversations-000.json` and on, of the archive that it sends.

A conversation is a tree of messages (`mapping`) with the one that is shown last (`current_node`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from topicloom.hosting import FilledText
from topicloom_app.recordings.exported import (
    CALLS,
    EMPTY,
    HIDDEN,
    INSTRUCTIONS,
    REASONING,
    RESULTS,
    ExportedConversation,
    UnknownFormError,
)
from topicloom_app.recordings.formats.base import (
    Source,
    begin_titled,
    join_parts,
    name_file,
    read_each,
)
from topicloom_app.recordings.formats.citations import resolve_marks
from topicloom_app.recordings.formats.tree import list_messages, read_tree
from topicloom_app.recordings.json_stream import Entry

_LEFT_OUT = {
    "user_editable_context": INSTRUCTIONS,
    "model_editable_context": INSTRUCTIONS,
    "app_pairing_content": INSTRUCTIONS,
    "thoughts": REASONING,
    "reasoning_recap": REASONING,
}
_CANVAS = "canmore."
_MEDIA = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "audio",
    "video_container_asset_pointer": "video",
    "real_time_user_audio_video_asset_pointer": "audio",
}
_SPOKEN = "audio_transcription"


class ChatGPT:
    """Conversations of ChatGPT's."""

    name = "chatgpt"

    def recognizes(self, entry: Any) -> bool:
        """A tree of messages that name their author."""
        said = list_messages(entry)
        return said is not None and (
            not said or any(isinstance(m, dict) and "author" in m for m in said)
        )

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """The conversations of a file."""
        begin = partial(
            begin_titled, ids=("conversation_id", "id"), title="title", began="create_time"
        )
        return read_each(entries, source, begin, _read)


def _read(
    value: Mapping[str, Any], conversation: ExportedConversation, source: Source
) -> Iterator[ExportedConversation]:
    return read_tree(value, conversation, source, _tell, time="create_time")


def _tell(name: str, message: Mapping[str, Any], into: ExportedConversation) -> None:
    if not message:  # the first node of a tree
        return
    role, text, reason = _judge(message)
    if reason:
        into.skipped[reason] += 1
    else:
        into.say(role, message.get("id") or name, message.get("create_time"), text)


def _judge(message: Mapping[str, Any]) -> tuple[str, str, str]:
    """Who said a message, its text, and why it is left out; "" if it is not."""
    role, content = message["author"]["role"], message.get("content") or {}
    recipient, metadata = message.get("recipient") or "all", message.get("metadata") or {}
    if role == "tool":
        drawn = _list_drawn(content)
        return "assistant", "\n".join(drawn), "" if drawn else RESULTS
    if role not in ("user", "assistant"):
        if role in ("system", "developer", "critic"):
            return role, "", INSTRUCTIONS
        raise UnknownFormError(FilledText("its role is {role!r}", role=role))
    if reason := _LEFT_OUT.get(content.get("content_type", "")):
        return role, "", reason
    if metadata.get("is_visually_hidden_from_conversation"):
        return role, "", HIDDEN
    if recipient.startswith(_CANVAS):
        text = _read_canvas(_read_text(content))
        return role, text, "" if text else CALLS
    if recipient != "all":
        return role, "", CALLS
    said = resolve_marks(_read_text(content), metadata)
    text = join_parts(said, "\n".join(_list_files(content, metadata)))
    return role, text, "" if text.strip() else EMPTY


def _read_text(content: Mapping[str, Any]) -> str:
    """The texts of a message: what was written, and what was spoken."""
    parts = content.get("parts") or [content.get("text") or content.get("result") or ""]
    texts = [p if isinstance(p, str) else (p or {}).get("text") or "" for p in parts]
    return "\n".join(filter(None, texts))


def _list_files(content: Mapping[str, Any], metadata: Mapping[str, Any]) -> list[str]:
    """Lines for what was attached, by its names where the export has them."""
    attached = [a for a in metadata.get("attachments") or () if isinstance(a, dict)]
    if attached:
        return [name_file(_kind_of(a), a.get("name")) for a in attached]
    parts = [p for p in content.get("parts") or () if isinstance(p, dict)]
    spoken = any(p.get("content_type") == _SPOKEN for p in parts)
    kinds = [_MEDIA[k] for p in parts if (k := p.get("content_type", "")) in _MEDIA]
    return [name_file(kind) for kind in kinds if not (spoken and kind == "audio")]


def _kind_of(attachment: Mapping[str, Any]) -> str:
    mime = attachment.get("mime_type") or attachment.get("mimeType") or ""
    return "image" if str(mime).startswith("image/") else "file"


def _list_drawn(content: Mapping[str, Any]) -> list[str]:
    """Lines for the pictures that a tool drew for the assistant."""
    parts = [p for p in content.get("parts") or () if isinstance(p, dict)]
    drawn = [p for p in parts if p.get("content_type") == "image_asset_pointer"]
    asked = [((p.get("metadata") or {}).get("dalle") or {}).get("prompt") for p in drawn]
    return [name_file("image", prompt) for prompt in asked]


def _read_canvas(text: str) -> str:
    """What the assistant wrote into a canvas, changed in it or remarked on it."""
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return text  # an older form, in which the document stands alone
    if not isinstance(call, dict):
        return text
    if isinstance(content := call.get("content"), str):
        name = call.get("name")
        return f"{name}:\n{content}" if isinstance(name, str) and name else content
    changes = [c for c in call.get("updates") or () if isinstance(c, dict)]
    remarks = [c for c in call.get("comments") or () if isinstance(c, dict)]
    said = [c.get("replacement") for c in changes] + [c.get("comment") for c in remarks]
    return "\n".join(text for text in said if isinstance(text, str))
