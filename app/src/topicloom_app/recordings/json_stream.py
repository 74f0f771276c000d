"""JSON entries of a text, one at a time: a list, lines, or lists within an object.

Exports are lists of thousands of conversations. They are read piece by piece, so the memory that it
takes grows with the largest entry, and not with the file. ijson would do that too, but it ends at
the first fault: neither where that is nor what stands behind it can be had from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TextIO

from topicloom import NotAConversationError
from topicloom_app.recordings.limits import check_entry

_READ = 1 << 16
"""Characters that are read at first; an entry that goes on has as many read again as there are."""
_OPEN_END = 16
"""An error that is so many characters from the end may be due to what is not read yet."""
_NESTED = ("chats", "left_chats")
"""Keys of objects within which lists of conversations stand: a whole account of Telegram's."""
_BLANK = re.compile(r"[\s,\ufeff\x1e]*")
"""What may stand between entries: also the commas of a list whose lines are read one by one."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a file, or the error that says why there is none."""

    value: Any
    """JSON as Python has it, a line of text, or a `NotAConversationError`."""
    place: str
    """Where it stands in the file: `entry 3`, `line 7`."""
    part: int = 0
    """Number of the list that it stands in, from 1; 0 for one that stands alone."""


def read_entries(file: TextIO, holds_conversations: Callable[[Any], bool]) -> Iterator[Entry]:
    """The entries of a JSON file: of its list, of its lines, or of lists within its object.

    A part that is not JSON becomes an entry with the error. After it, all lines that are JSON by
    themselves are read.

    Args:
        file: The text.
        holds_conversations: True for a value that is a conversation. If an object holds a list
            that begins with one, the entries are those of that list.
    """
    text = _Text(file)
    number = lists = 0
    while text.skip():
        lists += text.peek() == "["
        part = lists if text.peek() == "[" else 0
        try:
            for value in _read_value(text, holds_conversations):
                number += 1
                yield Entry(value, f"entry {number}", part)
        except UnicodeDecodeError:
            raise
        except (ValueError, RecursionError) as error:
            number += 1
            text.go_back()
            yield Entry(_explain(text, error), f"entry {number}", part)
            text.next_line()
            for line, value in text.whole_lines():
                number += 1
                yield Entry(value, f"line {line}", part)


def _explain(text: _Text, error: ValueError | RecursionError) -> NotAConversationError:
    said = "nested too deep" if isinstance(error, RecursionError) else _say(error)
    return _refuse(text.line, said, text.show())


def _refuse(number: int, why: str, shown: str) -> NotAConversationError:
    return NotAConversationError(
        "line {number} is not JSON ({why}): {shown!r}", number=number, why=why, shown=shown
    )


def _say(error: ValueError) -> str:
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)


def _read_value(text: _Text, holds_conversations: Callable[[Any], bool]) -> Iterator[Any]:
    """The entries of the next value: those of its list, those of lists within it, or itself."""
    start = text.peek()
    if start == "[":
        yield from _read_list(text)
    elif start == "{":
        yield from _read_object(text, holds_conversations)
    else:
        yield text.value()


def _read_list(text: _Text) -> Iterator[Any]:
    text.take("[")
    while text.skip() and text.peek() != "]":
        yield text.value()
    text.take("]")


def _read_object(text: _Text, holds_conversations: Callable[[Any], bool]) -> Iterator[Any]:
    """The conversations that an object holds, or itself if it holds no list of them."""
    text.mark()
    text.take("{")
    found: dict[str, Any] = {}
    streamed = False
    while text.skip() and text.peek() != "}":
        key = text.value()
        if not isinstance(key, str):
            raise ValueError(f"{key!r:.60} is no key of an object")
        text.skip()
        text.take(":")
        text.skip()
        if text.peek() == "[":
            items = _read_list(text)
            first = list(islice(items, 1))
            if first and holds_conversations(first[0]):
                streamed = True
                text.unmark()
                yield from chain(first, items)
            else:
                found[key] = [*first, *items]
        elif text.peek() == "{" and key in _NESTED:
            for inner in _read_object(text, holds_conversations):
                streamed = True
                text.unmark()
                yield inner
        else:
            found[key] = text.value()
    text.take("}")
    text.unmark()
    if not streamed:
        yield found


class _Text:
    """A text of which only what is being read is in memory."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._decode = file, json.JSONDecoder().raw_decode
        self._held, self._at, self._ended = "", 0, False
        self._mark: int | None = None
        self._line, self._counted = 1, 0

    @property
    def line(self) -> int:
        """Number of the line that is being read, from 1."""
        self._line += self._held.count("\n", self._counted, self._at)
        self._line -= self._held.count("\n", self._at, self._counted)
        self._counted = self._at
        return self._line

    def mark(self) -> None:
        """Remember this place, unless one is remembered."""
        self._mark = self._at if self._mark is None else self._mark

    def unmark(self) -> None:
        """Forget the place: what was read is in order."""
        self._mark = None

    def go_back(self) -> None:
        """Go back to the place that is remembered, if there is one, and forget it."""
        self._at = self._at if self._mark is None else self._mark
        self._mark = None

    def show(self) -> str:
        """What comes next, in a few characters."""
        return self._held[self._at : self._at + 60]

    def _more(self) -> bool:
        """Read as much again as is held; False at the end.

        Raises `NotAConversationError` if what is held is one entry that is too large.
        """
        if self._ended:
            return False
        start = self._at if self._mark is None else self._mark
        _ = self.line  # what goes is counted
        rest = self._held[start:]
        check_entry(rest)
        more = self._file.read(max(_READ, len(rest)))
        self._held, self._at = rest + more, self._at - start
        self._counted, self._mark = self._at, None if self._mark is None else 0
        self._ended = not more
        return bool(more)

    def skip(self) -> bool:
        """Skip what stands between entries; False at the end of the text."""
        while True:
            found = _BLANK.match(self._held, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._held):
                return True
            if not self._more():
                return False

    def peek(self) -> str:
        """The next character; "" at the end."""
        return self._held[self._at : self._at + 1]

    def take(self, sign: str) -> None:
        """Go behind a sign; raises `ValueError` if another one stands there."""
        if self.peek() != sign:
            raise ValueError(f"{sign} is missing")
        self._at += 1

    def value(self) -> Any:
        """The next value; raises `ValueError` if it is no JSON."""
        while True:
            try:
                value, end = self._decode(self._held, self._at)
            except json.JSONDecodeError as error:
                near = error.pos > len(self._held) - _OPEN_END
                if (near or error.msg.startswith("Unterminated")) and self._more():
                    continue
                raise
            # A number that ends where the text ends may go on, and so may `1.` and `1e-`.
            open_end = not self._held[end:].strip(".eE+-")
            if open_end and not isinstance(value, str | dict | list) and self._more():
                continue
            self._at = end
            return value

    def next_line(self) -> None:
        """Go to the beginning of the next line."""
        while (end := self._held.find("\n", self._at)) < 0:
            self._at = len(self._held)
            if not self._more():
                return
        self._at = end + 1

    def whole_lines(self) -> Iterator[tuple[int, Any]]:
        """The remaining lines that are an object or a list, with their numbers, or errors.

        Lines of a value that is written over several lines are none by themselves.
        """
        while self.skip():
            number, start = self.line, self._at
            while (end := self._held.find("\n", start)) < 0 and not self._ended:
                self._more()
                start = self._at
            line = self._held[self._at : end if end >= 0 else len(self._held)].strip()
            self._at = end + 1 if end >= 0 else len(self._held)
            if not line.startswith(("{", "[")) or line in ("[", "{"):
                continue
            try:
                yield number, json.loads(line.rstrip(", \r"))
            except (ValueError, RecursionError) as error:
                said = "nested too deep" if isinstance(error, RecursionError) else _say(error)
                yield number, _refuse(number, said, line[:60])
