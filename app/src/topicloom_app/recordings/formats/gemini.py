"""Gemini: `MyActivity.json` or `MyActivity.html` of Google Takeout (My Activity, Gemini Apps).

The activity is a list of prompts with their replies; no conversation is named. What was said with
no longer pause between is taken for one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any

from topicloom.hosting import FilledText, digest_text
from topicloom_app.recordings.exported import (
    EMPTY,
    INSTRUCTIONS,
    UNREAD_DAYS,
    ExportedConversation,
    UnknownFormError,
)
from topicloom_app.recordings.formats.activity_page import to_text
from topicloom_app.recordings.formats.base import Source, check_entry, join_parts, name_file
from topicloom_app.recordings.json_stream import Entry
from topicloom_app.recordings.local_times import LocalTimes, localize
from topicloom_app.recordings.times import parse_iso

_PRODUCTS = ("gemini", "bard")
_PROMPT = re.compile(r"(?:Prompted|Asked|Said|发送了提示|提示|已提示)[ :：\u00a0]?")
_BEGINNINGS = tuple(
    map(re.compile, (r"[^\n:：]{1,40}[:：][ \u00a0]*", r"[^\n\u00a0]{1,40}\u00a0", r"\S{1,40} "))
)
"""What may end the words before a prompt in another language: a colon, a wide space, a space."""
_PAUSE = timedelta(hours=1)
_LOOKED_AT = 1_000
"""Activities by which the language of an export is found out."""


class Gemini:
    """The activity of Gemini Apps, in Google Takeout."""

    name = "gemini"

    def recognizes(self, entry: Any) -> bool:
        """An activity of Gemini's, or of Bard's as it was called before."""
        if not (isinstance(entry, dict) and "title" in entry and "time" in entry):
            return False
        named = [entry.get("header"), *(entry.get("products") or ())]
        return any(p in str(name).lower() for p in _PRODUCTS for name in named)

    def read(self, entries: Iterable[Entry], source: Source) -> Iterator[ExportedConversation]:
        """What was said with no longer pause between, as a conversation each."""
        report, run = ExportedConversation(source.name), list[_Activity]()
        following = iter(entries)
        first = list(islice(following, _LOOKED_AT))
        known = [entry.value for entry in first if isinstance(entry.value, dict)]
        language = _Language(known, source)
        for entry in chain(first, following):
            with report.reading(entry.place):
                said = language.read(check_entry(entry.value), report)
                if said is None:
                    continue
                # The list goes from the newest to the oldest, or the other way round.
                if run and abs(said.moment - run[-1].moment) > _PAUSE:
                    yield _tell(run)
                    run = []
                run.append(said)
        yield from [_tell(run)] if run else []
        yield report


@dataclass(frozen=True, slots=True, order=True)
class _Activity:
    """A prompt with its reply."""

    moment: datetime
    key: str
    prompt: str
    reply: str


def _tell(run: Iterable[_Activity]) -> ExportedConversation:
    first, *others = sorted(run)
    conversation = ExportedConversation(
        f"gemini-{first.key}",
        name=f"Gemini {first.moment:%Y-%m-%d %H.%M}",
        place=first.moment.isoformat(),
    )
    for said in (first, *others):
        time = said.moment.isoformat()
        conversation.say("user", f"{said.key}-prompt", time, said.prompt)
        if said.reply:
            conversation.say("assistant", f"{said.key}-reply", time, said.reply)
    return conversation


class _Language:
    """How an export writes what is not the user's: its times, and the words before a prompt."""

    def __init__(self, activities: Sequence[Mapping[str, Any]], source: Source) -> None:
        times = [str(activity.get("time")) for activity in activities]
        self._zone = source.zone
        self._times = LocalTimes(
            (time for time in times if not parse_iso(time)),
            zone=source.zone,
            day_first=source.day_first,
        )
        replied = (a.get("title") for a in activities if a.get("safeHtmlItem"))
        self._opening = _find_opening([title for title in replied if isinstance(title, str)])

    def read(self, value: Mapping[str, Any], report: ExportedConversation) -> _Activity | None:
        """An activity; None if it is reported, or nothing was said in it."""
        title, time = value["title"], value["time"]
        moment = parse_iso(time) or self._times.read(time)
        if moment is None and self._times.ambiguous:
            report.report(UNREAD_DAYS, time)
            return None
        if moment is None:
            raise UnknownFormError(FilledText("its time is {time!r:.60}", time=time))
        reply = "\n\n".join(
            to_text(item["html"]) for item in value.get("safeHtmlItem") or () if item.get("html")
        )
        opened = self._opening.match(title)
        if not (opened or reply):  # such as "Used Gemini Apps", or feedback that was given
            report.skipped[INSTRUCTIONS] += 1
            return None
        files = value.get("attachedFiles") or ()
        lines = [name_file("file", file) for file in files if isinstance(file, str)]
        if isinstance(image := value.get("imageFile"), str):
            lines.append(name_file("image", image))
        prompt = join_parts(title[opened.end() :] if opened else title, "\n".join(lines))
        if not prompt:
            report.skipped[EMPTY] += 1
            return None
        key = digest_text(f"{time}\n{title}")
        return _Activity(localize(moment, self._zone), key, prompt, reply)


def _find_opening(titles: Sequence[str]) -> re.Pattern[str]:
    """What stands before the prompts: known words, or those that most of some titles begin with."""
    if not any(map(_PROMPT.match, titles)):
        for beginning in _BEGINNINGS:
            found = Counter(begun[0] for title in titles if (begun := beginning.match(title)))
            for words, count in found.most_common(1):
                if count > 1 and 2 * count > len(titles):
                    return re.compile(re.escape(words))
    return _PROMPT
