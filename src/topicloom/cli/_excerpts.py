"""Parts of messages that fit a line, and which of them to show."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import log

from rich.cells import cell_len, set_cell_size

from topicloom.cli.console import to_one_line
from topicloom.cli.words import say
from topicloom.state.recall import TopicNote, parse_message_number
from topicloom.state.stored_message import StoredMessage

_TERM = re.compile(r"\d[\d.,]*|[^\W\d_]{4,}")
_HAN = re.compile(r"[\u3400-\u9fff]+")


def shorten(text: str, width: int) -> str:
    """A text on one line of at most so many columns, its end left out where it is too long."""
    line = to_one_line(text)
    if cell_len(line) <= width:
        return line
    return f"{set_cell_size(line, width - 1).rstrip()}…"


def find_excerpt(text: str, wanted: str, width: int) -> str:
    """The part of a text that shares most with a wanted one, in at most `width` columns."""
    line = to_one_line(text)
    if cell_len(line) <= width:
        return line
    lower = line.lower()
    hits = sorted(hit for hit in map(lower.find, extract_terms(wanted)) if hit >= 0)
    start = max(hits, key=lambda h: sum(h <= other < h + width // 2 for other in hits), default=0)
    if cell_len(line[:start]) < width // 2:
        return shorten(line, width)
    start = max(0, start - width // 4)
    room = cell_len(line[start:]) - width
    while room < 0 < start:
        start -= 1
        room += cell_len(line[start])
    return f"…{shorten(line[start + 1 :], width - 1)}"


class TermRarity:
    """Scores the terms that two messages of a conversation share; rare ones count more."""

    def __init__(self, messages: Sequence[StoredMessage]) -> None:
        """Count the messages of a conversation that each term is in."""
        self._size = len(messages)
        self._counts = Counter(term for m in messages for term in set(extract_terms(m.text)))

    def score_shared(self, text: str, other: str, without: str = "") -> float:
        """Sum of the rarities of the terms that both have, and a third text has not."""
        both = set(extract_terms(text)).intersection(extract_terms(other))
        both.difference_update(extract_terms(without))
        return sum(log((1 + self._size) / (1 + self._counts[term])) for term in sorted(both))


def extract_terms(text: str) -> list[str]:
    """Numbers, longer words and pairs of Han characters, lower case."""
    pairs = [run[i : i + 2] for run in _HAN.findall(text) for i in range(len(run) - 1)]
    return _TERM.findall(_HAN.sub(" ", text.lower())) + pairs


def count_quotes(notes: Sequence[TopicNote], most: int | None = None) -> str:
    """The number of quotes from each topic, largest first; at most `most` topics are named."""
    quoting = sorted((n for n in notes if n.quotes), key=lambda n: -len(n.quotes))
    named = [say(f"{len(n.quotes)} from {shorten(n.name, 24)}") for n in quoting[:most]]
    rest = sum(len(n.quotes) for n in quoting[len(named) :])
    others = say(f"{rest} from other topics")
    return ", ".join([*named, others] if rest else named) or say("nothing")


def format_runs(ids: Sequence[str]) -> str:
    """Short ids in order, neighbours as ranges: `m3, m7-m9`."""
    numbers = sorted(map(parse_message_number, ids))
    begins = [n for n in numbers if n - 1 not in numbers]
    ends = [n for n in numbers if n + 1 not in numbers]
    return ", ".join(f"m{a}" if a == b else f"m{a}-m{b}" for a, b in zip(begins, ends, strict=True))
