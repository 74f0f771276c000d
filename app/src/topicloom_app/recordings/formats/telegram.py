"""Telegram: `result.json` of Telegram Desktop, a single chat or a whole account."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from topicloom_app.recordings.exported import EMPTY, INSTRUCTIONS, ExportedConversation, clean_title
from topicloom_app.recordings.formats.base import Source, join_parts, name_file, read_each
from topicloom_app.recordings.json_stream import Entry

_MEDIA = {
    "voice_message": "audio",
    "audio_file": "audio",
    "video_message": "video",
    "video_file": "video",
    "animation": "video",
    "sticker": "sticker",
}


class Telegram:
    """Chats of Telegram's. What people say to each other has many subjects."""

    name = "telegram"

    def recognizes(self, entry: Any) -> bool:
        """A chat of a type that Telegram has, or messages with a sender's id."""
        if not (isinstance(entry, dict) and isinstance(entry.get("messages"), list)):
            return False
        first = [m for m in entry["messages"][:50] if isinstance(m, dict)]
        return any("date_unixtime" in m or "from_id" in m for m in first) or (
            not entry["messages"] and "_" in str(entry.get("type"))
        )

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """The chats of a file."""
        return read_each(entries, source, _begin, _read)


def _begin(value: Mapping[str, Any], name: str) -> ExportedConversation:
    called = value.get("name") or (
        "Saved Messages" if value.get("type") == "saved_messages" else ""
    )
    id_ = f"telegram-{value['id']}" if value.get("id") else name
    return ExportedConversation(id_, None, clean_title(called))


def _read(
    value: Mapping[str, Any], conversation: ExportedConversation, source: Source
) -> Iterator[ExportedConversation]:
    """A chat, and each topic of a group as a conversation of its own."""
    topics, places = dict[Any, ExportedConversation](), dict[Any, Any]()
    for number, message in enumerate(value["messages"], 1):
        with conversation.reading(f"message {number}"):
            id_, action = message["id"], message.get("action")
            if action == "topic_created":
                name = clean_title(message.get("title"))
                topics[id_] = ExportedConversation(f"{conversation.id}-topic-{id_}", name)
            places[id_] = topic = (
                id_ if id_ in topics else places.get(message.get("reply_to_message_id"))
            )
            into = topics.get(topic, conversation)
            if action == "topic_edit" and topic and message.get("new_title"):
                into.title = clean_title(message["new_title"])
            _tell(message, into, f"{conversation.id}-{id_}")
    yield conversation
    yield from topics.values()


def _tell(message: Mapping[str, Any], into: ExportedConversation, id_: str) -> None:
    if message["type"] != "message":  # such as "joined the group"
        into.skipped[INSTRUCTIONS] += 1
        return
    text = join_parts(_read_text(message.get("text", "")), "\n".join(_list_files(message)))
    if not text:
        into.skipped[EMPTY] += 1
        return
    speaker = message.get("from")
    if "forwarded_from" in message:  # null for somebody who does not want to be named
        text = join_parts(name_file("forwarded by", speaker), text)
        speaker = message["forwarded_from"] or "?"
    # `date` is the clock of the machine that wrote the file, without its zone.
    time = message.get("date_unixtime") or message.get("date")
    into.say("user", id_, time, text, speaker=speaker if isinstance(speaker, str) else None)


def _read_text(text: Any) -> str:
    """A text, or a list of texts and parts of a kind, such as links and bold words."""
    parts = text if isinstance(text, list) else [text]
    return "".join(part if isinstance(part, str) else part["text"] for part in parts)


def _list_files(message: Mapping[str, Any]) -> list[str]:
    lines = [name_file("image")] if message.get("photo") else []
    if kind := message.get("media_type"):
        said = message.get("sticker_emoji") if kind == "sticker" else message.get("file_name")
        lines.append(name_file(_MEDIA.get(kind, "file"), said))
    elif message.get("file"):
        lines.append(name_file("file", message.get("file_name")))
    if isinstance(place := message.get("location_information"), dict):
        lines.append(name_file("place", f"{place.get('latitude')}, {place.get('longitude')}"))
    if isinstance(card := message.get("contact_information"), dict):
        name = " ".join(filter(None, [card.get("first_name"), card.get("last_name")]))
        lines.append(name_file("contact", f"{name} {card.get('phone_number') or ''}"))
    if isinstance(poll := message.get("poll"), dict):
        answers = ", ".join(str(a.get("text")) for a in poll.get("answers") or ())
        lines.append(name_file("poll", f"{poll.get('question')}: {answers}"))
    return lines
