"""The page of activities that Google Takeout makes, and the text of HTML."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from html.parser import HTMLParser
from itertools import groupby
from operator import itemgetter
from typing import Any, TextIO

from topicloom_app.recordings.json_stream import Entry
from topicloom_app.recordings.local_times import looks_like_time

_BREAKS = frozenset("p br div li ul ol tr table h1 h2 h3 h4 h5 h6 pre blockquote hr".split())


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


def _read_cell(cell: list[str]) -> dict[str, Any]:
    """A cell of the page as an activity: what stands before its time is the prompt."""
    header, *parts = cell
    texts = [to_text(part) for part in parts]
    at = next((n for n, text in enumerate(texts) if n and looks_like_time(text)), None)
    if at is None:
        return {"header": header.strip(), "title": "\n".join(texts), "time": ""}
    reply = "<br>".join(parts[at + 1 :])
    return {
        "header": header.strip(),
        "title": "\n".join(texts[:at]),
        "time": texts[at],
        "safeHtmlItem": [{"html": reply}] if reply.strip() else [],
    }


class _Text(HTMLParser):
    """The text of HTML, with line breaks where it has paragraphs and items of lists."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[tuple[bool, str]] = []
        """Each with whether its spaces count, as those of code do."""
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A tag begins."""
        self._code += tag == "pre"
        if tag in _BREAKS - {"pre"}:
            self._add("\n- " if tag == "li" else "\n")

    def handle_endtag(self, tag: str) -> None:
        """A tag ends."""
        self._code -= tag == "pre" and self._code > 0
        if tag in _BREAKS - {"br", "li", "pre"}:
            self._add("\n")

    def handle_data(self, data: str) -> None:
        """Words."""
        self._add(data)

    def _add(self, text: str) -> None:
        self.parts.append((self._code > 0, text))


def to_text(html: str) -> str:
    """The text of HTML: code as it is, and at most one empty line between other parts."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    blocks = list[str]()
    for is_code, parts in groupby(parser.parts, itemgetter(0)):
        text = "".join(text for _, text in parts)
        blocks.append(text.strip("\n") if is_code else _strip_lines(text))
    return "\n\n".join(filter(None, blocks))


def _strip_lines(text: str) -> str:
    lines = [line.strip() for line in text.split("\n")]
    kept = [line for n, line in enumerate(lines) if line or (n and lines[n - 1])]
    return "\n".join(kept).strip()
