"""WhatsApp: the text of an exported chat, `_chat.txt` or `WhatsApp Chat with NAME.txt`.

A message begins with its time and its sender; what follows on further lines belongs to it. The
order of day and month is that of the phone's language, so it is found out from the whole chat.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from topicloom.hosting import digest_text
from topicloom_app.recordings.exported import EMPTY, INSTRUCTIONS, ExportedConversation, clean_title
from topicloom_app.recordings.formats.base import Source, name_file
from topicloom_app.recordings.json_stream import Entry

_HIDDEN = re.compile("[\u200e\u200f\u202a-\u202e\ufeff]")
"""Marks of direction that WhatsApp puts before times and names."""
_BEGIN = re.compile(
    r"\[?(?P<day>\d{1,4}[./-]\d{1,2}[./-]\d{1,4}),?[ \u00a0\u202f]"
    r"(?P<clock>\d{1,2}[:.]\d{2}(?:[:.]\d{2})?)"
    r"(?:[ \u00a0\u202f](?P<half>[AaPp]\.?[ \u00a0\u202f]?[Mm]\.?))?"
    r"(?:\] ?| - )(?P<rest>.*)"
)
_SENDER = re.compile(r"(?P<sender>[^:\n]{1,60}):(?: (?P<text>.*))?")
_OMITTED = re.compile(
    r"<(?:Media omitted|attached: (?P<attached>[^<>\n]{1,200})|Medien ausgeschlossen)>"
    r"|(?P<named>[^\n]{1,200}) \((?:file attached|Datei angehängt|文件附件)\)"
    r"|(?P<kind>image|video|audio|sticker|GIF|document|Contact card) omitted|<省略影音内容>"
)
_TITLE = re.compile(r"(?i)(?:whatsapp chat (?:with|-)|whatsapp-chat mit|与|與)?\s*(?P<name>.*)")


@dataclass(slots=True)
class _Line:
    """A message as it stands in the text."""

    day: str
    clock: str
    half: str
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
        name = "" if source.name == "_chat" else clean_title(_find_name(source.name))
        conversation = ExportedConversation(f"whatsapp-{name or source.name}", None, name)
        lines = _gather((str(entry.value) for entry in entries), conversation)
        read_day = _find_order([line.day for line in lines])
        seen = Counter[str]()
        for line in lines:
            with conversation.reading(f"{line.day}, {line.clock}"):
                _tell(line, read_day(line.day), conversation, seen)
        yield conversation


def _find_name(stem: str) -> str:
    found = _TITLE.match(stem)
    return found["name"] if found else stem


def _gather(lines: Iterable[str], into: ExportedConversation) -> list[_Line]:
    found = list[_Line]()
    for raw in lines:
        by_program = ": \u200e" in raw and not _OMITTED.search(_HIDDEN.sub("", raw))
        line = _HIDDEN.sub("", raw).rstrip("\r\n")
        begun = _BEGIN.match(line)
        if begun is None:
            if found:
                found[-1].text += f"\n{line}"
            continue
        said = _SENDER.fullmatch(begun["rest"])
        if said is None or by_program:  # such as "Anna joined"
            into.skipped[INSTRUCTIONS] += 1
            # What follows it on further lines belongs to nobody.
            found.append(_Line("", "", "", "", ""))
            continue
        half = begun["half"] or ""
        found.append(_Line(begun["day"], begun["clock"], half, said["sender"], said["text"] or ""))
    return [line for line in found if line.day]


def _find_order(days: Sequence[str]) -> _ReadDay:
    """How the days of a chat are written: a year first, or the part that goes beyond 12 a day.

    Where no day of the chat tells, that order is taken by which it goes on in time; else a month
    comes first between slashes, as in the United States.
    """
    parts = [[int(part) for part in re.split(r"[./-]", day)] for day in days]
    if any(first > 31 for first, *_ in parts):
        return _ReadDay(0, 1, 2)
    month_first, day_first = _ReadDay(2, 0, 1), _ReadDay(2, 1, 0)
    if any(first > 12 for first, *_ in parts):
        return day_first
    if any(second > 12 for _, second, _ in parts):
        return month_first
    back = {order: _count_back([order(day) for day in days]) for order in (month_first, day_first)}
    if back[month_first] != back[day_first]:
        return min(back, key=back.__getitem__)
    return month_first if any("/" in day for day in days) else day_first


def _count_back(days: Sequence[tuple[int, int, int]]) -> int:
    return sum(later < earlier for earlier, later in pairwise(days))


@dataclass(frozen=True, slots=True)
class _ReadDay:
    """Where year, month and day stand in a date."""

    year: int
    month: int
    day: int

    def __call__(self, text: str) -> tuple[int, int, int]:
        parts = [int(part) for part in re.split(r"[./-]", text)]
        year = parts[self.year]
        return year + 2000 if year < 100 else year, parts[self.month], parts[self.day]


def _tell(
    line: _Line, day: tuple[int, int, int], into: ExportedConversation, seen: Counter[str]
) -> None:
    hour, minute, second, *_ = (*(int(part) for part in re.split("[:.]", line.clock)), 0)
    if line.half:
        hour = hour % 12 + (12 if line.half[0] in "Pp" else 0)
    moment = datetime(*day, hour, minute, second)
    text = _OMITTED.sub(_name_omitted, line.text).strip()
    if not text:
        into.skipped[EMPTY] += 1
        return
    # An export holds the newest messages only, so their numbers change: the id is what was said.
    key = f"{moment.isoformat()}\n{line.sender}\n{text}"
    seen[key] += 1
    said = f"{key}\n{seen[key]}"
    id_ = f"{into.id}-{digest_text(said)}"
    into.say("user", id_, moment.isoformat(), text, speaker=line.sender)


def _name_omitted(match: re.Match[str]) -> str:
    name = match["attached"] or match["named"]
    kind = {"image": "image", "video": "video", "audio": "audio", "sticker": "sticker"}.get(
        match["kind"] or "", "file"
    )
    return name_file(kind, name)
