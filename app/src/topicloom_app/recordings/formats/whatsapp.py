"""WhatsApp: the text of an exported chat, `_chat.txt` or `WhatsApp Chat with NAME.txt`.

A message begins with its time and its sender; what follows on further lines belongs to it. Times
are written as the phone's language has them, so how to read them is found out from the whole chat.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from topicloom.hosting import FilledText, digest_text
from topicloom_app.recordings.exported import (
    EMPTY,
    INSTRUCTIONS,
    UNREAD_DAYS,
    UNREAD_MESSAGES,
    ExportedConversation,
    UnknownFormError,
    clean_title,
)
from topicloom_app.recordings.formats.base import Source, name_file
from topicloom_app.recordings.json_stream import Entry
from topicloom_app.recordings.local_times import LocalTimes

_MARKS = ("\u200e", "\u200f")
"""Marks of direction that WhatsApp puts before words of its own, in any language."""
_HIDDEN = re.compile("[\u200e\u200f\u202a-\u202e\ufeff]")
_BEGIN = re.compile(
    r"\[?(?P<time>\d{1,4}(?:[^\w\n]{1,2}|年)\d{1,2}(?:[^\w\n]{1,2}|月)\d{1,4}\D{1,12}"
    r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:[ \u00a0\u202f][^\d\n\]:-]{1,12}?)?)"
    r"(?:\] ?| - |, (?=[^:\n]{1,60} : ))(?P<rest>.*)"
)
_SENDER = re.compile(r"(?P<sender>[^:\n]{1,60}):(?: (?P<text>.*))?")
_PLACE = re.compile(r"<[^<>\n]{1,260}>|[^<>()\n]{1,200}\.\w{2,5} \([^()\n]{1,40}\)")
"""What stands for a file, in any language: `<Media omitted>`, `plan.pdf (file attached)`."""


@dataclass(slots=True)
class _Line:
    """A message as it stands in the text."""

    time: str
    sender: str
    text: str


class WhatsApp:
    """A chat of WhatsApp's. What people say to each other has many subjects."""

    name = "whatsapp"

    def recognizes(self, entry: Any) -> bool:
        """A line that begins with a time in one of WhatsApp's forms."""
        return isinstance(entry, str) and bool(_BEGIN.match(_HIDDEN.sub("", entry)))

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """The chat of a file."""
        conversation = ExportedConversation(f"whatsapp-{source.name}")
        lines = _gather((str(entry.value) for entry in entries), conversation)
        times = LocalTimes(
            (line.time for line in lines), zone=source.zone, day_first=source.day_first
        )
        if times.ambiguous:
            conversation.report(UNREAD_DAYS, source.name, lines[0].time)
        else:
            conversation.name = clean_title(_find_name(source.name, lines))
            seen = Counter[str]()
            for line in lines:
                with conversation.reading(line.time):
                    _tell(line, times, conversation, seen)
        yield conversation


def _find_name(stem: str, lines: Iterable[_Line]) -> str:
    """The name of the person or group: the sender after whom the file is named, or its own name."""
    named = {line.sender for line in lines if line.sender in stem}
    return max(named, key=len, default="" if stem == "_chat" else stem)


def _gather(lines: Iterable[str], into: ExportedConversation) -> list[_Line]:
    found = list[_Line]()
    for raw in lines:
        line = _HIDDEN.sub("", raw).rstrip("\r\n")
        begun = _BEGIN.match(line)
        if begun is None:
            if found:
                found[-1].text += f"\n{line}"
            elif line:
                into.report(UNREAD_MESSAGES, f"{line!r:.60}")
            continue
        said = _SENDER.fullmatch(begun["rest"])
        words = (said and said["text"]) or ""
        place, marked = _PLACE.fullmatch(words), raw.split(": ", 1)[-1].startswith(_MARKS)
        notice = marked and not place and not raw.startswith(_MARKS)
        if said is None or notice:  # such as "Anna joined"
            into.skipped[INSTRUCTIONS] += 1
            # What follows it on further lines belongs to nobody.
            found.append(_Line("", "", ""))
            continue
        if place or marked:
            words = name_file(words.strip("<>"))
        found.append(_Line(begun["time"], said["sender"].strip(), words))
    return [line for line in found if line.time]


def _tell(line: _Line, times: LocalTimes, into: ExportedConversation, seen: Counter[str]) -> None:
    moment = times.read(line.time)
    if moment is None:
        raise UnknownFormError(FilledText("its time is {time!r:.60}", time=line.time))
    if not line.text.strip():
        into.skipped[EMPTY] += 1
        return
    # An export holds the newest messages only, so their numbers change: the id is what was said.
    key = f"{moment.isoformat()}\n{line.sender}\n{line.text}"
    seen[key] += 1
    said = f"{key}\n{seen[key]}"
    id_ = f"{into.id}-{digest_text(said)}"
    into.say("user", id_, moment.isoformat(), line.text, speaker=line.sender)
