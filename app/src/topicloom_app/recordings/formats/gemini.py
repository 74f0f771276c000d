"""Gemini: `MyActivity.json` or `MyActivity.html` of Google Takeout (My Activity, Gemini Apps).

The activity is a list of prompts with their replies; no conversation is named. What was said with
no longer pause between is taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from html.parser import HTMLParser
from typing import Any, TextIO

from topicloom.hosting import FilledText, digest_text
from topicloom_app.recordings.exported import (
    EMPTY,
    INSTRUCTIONS,
    ExportedConversation,
    UnknownFormError,
)
from topicloom_app.recordings.formats.base import Source, check_entry, join_parts, name_file
from topicloom_app.recordings.json_stream import Entry
from topicloom_app.recordings.times import parse_moment

_PRODUCTS = ("gemini", "bard")
_PROMPT = re.compile(r"(?:Prompted|Asked|Said|发送了提示|提示|已提示)[ :：\u00a0]?")
_PAUSE = timedelta(hours=1)
_BREAKS = frozenset("p br div li ul ol tr table h1 h2 h3 h4 h5 h6 pre blockquote hr".split())


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
        for entry in entries:
            with report.reading(entry.place):
                said = _read_activity(check_entry(entry.value), report)
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


def _read_activity(value: Mapping[str, Any], report: ExportedConversation) -> _Activity | None:
    title, moment = value["title"], parse_moment(value["time"])
    if moment is None:
        raise UnknownFormError(FilledText("its time is {time!r:.60}", time=value["time"]))
    reply = "\n\n".join(
        to_text(item["html"]) for item in value.get("safeHtmlItem") or () if item.get("html")
    )
    said = _PROMPT.match(title)
    if not (said or reply):  # such as "Used Gemini Apps", or feedback that was given
        report.skipped[INSTRUCTIONS] += 1
        return None
    prompt = title[said.end() :] if said else title
    files = [name_file("file", f) for f in value.get("attachedFiles") or () if isinstance(f, str)]
    images = [value["imageFile"]] if isinstance(value.get("imageFile"), str) else []
    lines = files + [name_file("image", image) for image in images]
    whole = join_parts(prompt, "\n".join(lines))
    if not whole:
        report.skipped[EMPTY] += 1
        return None
    key = digest_text(f"{value['time']}\n{title}")
    return _Activity(moment, key, whole, reply)


class _Text(HTMLParser):
    """The text of HTML, with line breaks where it has paragraphs and items of lists."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag begins."""
        if tag in _BREAKS:
            self.parts.append("\n- " if tag == "li" else "\n")

    def handle_endtag(self, tag: str) -> None:
        """A tag ends."""
        if tag in _BREAKS - {"br", "li"}:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Words."""
        self.parts.append(data)


def to_text(html: str) -> str:
    """The text of HTML; at most one empty line between its parts."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    lines = [line.strip() for line in "".join(parser.parts).split("\n")]
    kept = [line for n, line in enumerate(lines) if line or (n and lines[n - 1])]
    return "\n".join(kept).strip()


def read_activity_page(text: TextIO) -> Iterator[Entry]:
    """The activities of `MyActivity.html`, as `MyActivity.json` has them."""
    page, number = _Page(), 0
    while piece := text.read(1 << 16):
        page.feed(piece)
        for cell in page.take():
            number += 1
            yield Entry(_read_cell(cell), f"entry {number}")
    page.close()
    for cell in page.take():
        number += 1
        yield Entry(_read_cell(cell), f"entry {number}")


class _Page(HTMLParser):
    """The cells of the page: a header, and the parts of the text beside it, cut at line breaks."""

    def __init__(self) -> None:
        super().__init__()
        self._cells: list[list[str]] = []
        self._depth, self._header, self._body = 0, False, 0

    def take(self) -> list[list[str]]:
        """The cells that are complete."""
        whole = self._cells if not self.rawdata and not self._depth else self._cells[:-1]
        self._cells = self._cells[len(whole) :]
        return whole

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag begins."""
        names = (dict(attrs).get("class") or "").split()
        if tag == "div":
            self._depth += 1
            if "outer-cell" in names:
                self._cells.append(["", ""])
                self._body = 0
            elif "content-cell" in names and self._cells and not self._body:
                self._body = self._depth if len(self._cells[-1]) == 2 else 0
        elif tag == "p" and "mdl-typography--title" in names:
            self._header = True
        elif self._body and tag == "br":
            self._cells[-1].append("")
        elif self._body:
            self._cells[-1][-1] += f"<{tag}>"

    def handle_endtag(self, tag: str) -> None:
        """A tag ends."""
        if tag == "div":
            if self._body == self._depth:
                self._body = 0
                self._cells[-1].append("")  # so that no other cell of it is taken for the text
            self._depth -= 1
        elif tag == "p" and self._header:
            self._header = False
        elif self._body:
            self._cells[-1][-1] += f"</{tag}>"

    def handle_data(self, data: str) -> None:
        """Words."""
        if self._header and self._cells:
            self._cells[-1][0] += data
        elif self._body:
            self._cells[-1][-1] += escape(data)


_CLOCK = re.compile(r"\d{1,2}:\d{2}")


def _read_cell(cell: list[str]) -> dict[str, Any]:
    """A cell of the page as an activity: what stands before its time is the prompt."""
    header, *parts = cell
    texts = [to_text(part) for part in parts]
    at = next(
        (
            n
            for n, t in enumerate(texts)
            if n and len(t) < 60 and _CLOCK.search(t) and parse_moment(t)
        ),
        None,
    )
    if at is None:
        return {"header": header.strip(), "title": "\n".join(texts), "time": ""}
    reply = "<br>".join(parts[at + 1 :])
    return {
        "header": header.strip(),
        "title": "\n".join(texts[:at]),
        "time": texts[at],
        "safeHtmlItem": [{"html": reply}] if reply.strip() else [],
    }
