"""The formats that can be imported, in the order in which they are asked whether they know one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topicloom_app.recordings.exported import UNREADABLE
from topicloom_app.recordings.formats.base import ExportFormat
from topicloom_app.recordings.formats.chatgpt import ChatGPT
from topicloom_app.recordings.formats.claude import Claude
from topicloom_app.recordings.formats.claude_code import ClaudeCode
from topicloom_app.recordings.formats.deepseek import DeepSeek
from topicloom_app.recordings.formats.gemini import Gemini
from topicloom_app.recordings.formats.langchain import LangChain
from topicloom_app.recordings.formats.librechat import LibreChat
from topicloom_app.recordings.formats.open_webui import OpenWebUI
from topicloom_app.recordings.formats.openai import OpenAIMessages
from topicloom_app.recordings.formats.own import OwnLines
from topicloom_app.recordings.formats.sharegpt import ShareGPT
from topicloom_app.recordings.formats.telegram import Telegram
from topicloom_app.recordings.formats.whatsapp import WhatsApp

FORMATS: Mapping[str, ExportFormat] = {
    known.name: known
    for known in (
        ChatGPT(),
        DeepSeek(),
        Claude(),
        OpenWebUI(),
        LibreChat(),
        ClaudeCode(),
        Gemini(),
        Telegram(),
        WhatsApp(),
        ShareGPT(),
        OwnLines(),
        LangChain(),
        OpenAIMessages(),
    )
}
"""The formats by their names. The widest, which takes any `role` and `content`, comes last."""


def find_format(entry: Any) -> ExportFormat | None:
    """The format of an entry, by its content; None if nobody knows it."""
    return next((known for known in FORMATS.values() if _recognizes(known, entry)), None)


def _recognizes(known: ExportFormat, entry: Any) -> bool:
    try:
        return known.recognizes(entry)
    except UNREADABLE:  # it has a part that is of another form
        return False


def holds_conversation(value: Any) -> bool:
    """True for a value that is a whole conversation of a known format, and no message of one."""
    return (
        isinstance(value, dict) and bool(_WHOLE & value.keys()) and find_format(value) is not None
    )


_WHOLE = frozenset(
    "mapping chat_messages chat history messages messagesTree conversations conversation"
    " items".split()
)
"""Keys that conversations have, and messages have not."""
