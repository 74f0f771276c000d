"""The grammar of time expressions in `prompts/cues/times_*.txt`, and what it finds in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple
from unicodedata import numeric

from topicloom.prompts.loader import LANGUAGES, load_rows

UNITS = ("", "year", "season", "month", "week", "day")
"""Coarse before fine, no unit first; a season is several months of one year."""
FRAMES = {"months": "year", "days": "month", "weekdays": "week"}
"""What steps that number the parts of a frame need for one."""
_EDGE = r"(?:(?<![a-z0-9])|(?![a-z0-9]))"
"""No Latin word or number goes on across it; Han have no such edges."""
_KIND = re.compile(r"{([a-z]+)}")


class TimeStep(NamedTuple):
    """A step to the time that is meant; `times_en.txt` says what its forms mean."""

    kind: str
    unit: str
    """The kind of days that the step leads to."""
    first: int
    last: int
    over: bool
    """True if what is meant must have ended."""


Steps = tuple[TimeStep, ...]
"""Steps that fit each other, coarse before fine."""
_Words = list[tuple[str, str]]
"""Pattern and value of each word of a kind; no value for numbers."""


class Expression(NamedTuple):
    """A time expression in a text."""

    start: int
    end: int
    readings: tuple[Steps, ...]
    """One, but for a part of something that is not named."""
    sure: bool
    """False if it means a time only where the words next to it say so."""


class Grammar(NamedTuple):
    """The tables of all languages."""

    pattern: re.Pattern[str]
    """Finds any row: a group for each word, and an empty one at its end."""
    rows: dict[int, tuple[list[_Words], str, bool]]
    """The kinds of words, the form, and if it is sure, of each row, by the group at its end."""
    around: dict[str, re.Pattern[str]]
    """Patterns of the words between and around expressions, by name."""

    def find(self, text: str) -> list[Expression]:
        """The expressions in a text; neighbours that fit together are one."""
        joined: list[Expression] = []
        for found in self._find_rows(text):
            both = self._join(text, joined[-1], found) if joined else None
            joined[-1:] = [both] if both else [*joined[-1:], found]
        return [found for found in joined if len(found.readings) == 1]

    def is_time(self, found: Expression, text: str) -> bool:
        """True if an expression, with the words next to it, means the days that it names."""
        sure = found.sure or self.extend(found, text, "sure")
        return bool(sure) and not self.extend(found, text, "not")

    def are_linked(self, first: Expression, last: Expression, text: str) -> bool:
        """True if two expressions, one after the other, make a range."""
        if not self.around["link"].fullmatch(text, first.end, last.start):
            return False
        alike = first.readings[0][-1].unit == last.readings[0][-1].unit
        both = first._replace(end=last.end)
        return alike or last.sure or self.extend(both, text, "range") is not None

    def extend(self, found: Expression, text: str, name: str) -> Expression | None:
        """An expression with the words right next to it, if these are of some name."""
        marked = f"{text[: found.start]}<>{text[found.end :]}"
        match = self.around[name].search(marked)
        end = len(text) - len(marked)
        return found._replace(start=match.start(), end=match.end() + end) if match else None

    def _find_rows(self, text: str) -> Iterator[Expression]:
        for match in self.pattern.finditer(text):
            row = match.lastindex or 0
            kinds, form, sure = self.rows[row]
            for number, kind in enumerate(kinds):
                word = match[row - len(kinds) + number]
                form = form.replace(f"${number + 1}", _read_word(word, kind) if word else "")
            if form != "none":
                readings = tuple(tuple(map(_parse_step, r.split("; "))) for r in form.split(" | "))
                yield Expression(match.start(), match.end(), readings, sure)

    def _join(self, text: str, left: Expression, right: Expression) -> Expression | None:
        if not self.around["join"].fullmatch(text, left.end, right.start):
            return None
        fits = (_fit(a + b) for a in left.readings for b in right.readings)
        steps = next(filter(None, fits), None)
        return Expression(left.start, right.end, (steps,), True) if steps else None


def _fit(steps: Steps) -> Steps:
    """Steps in order; none if any does not fit. A weekday next to a date says nothing new."""
    if any(step.kind == "days" for step in steps):
        steps = tuple(step for step in steps if step.kind != "weekdays")
    steps = tuple(sorted(steps, key=lambda step: UNITS.index(step.unit)))
    return steps if all(FRAMES.get(b.kind) == a.unit for a, b in pairwise(steps)) else ()


def _parse_step(form: str) -> TimeStep:
    name, *arguments = form.split()
    kind = name.rstrip("!+")
    units = {"back": arguments[0], "year": "year", "months": "season" if arguments[1:] else "month"}
    first, last = int(arguments[kind == "back"]), int(arguments[-1]) + name.endswith("+")
    if kind == "back" and first < 0 < last:  # "in a few weeks": the sign is of both
        first, last = -last, first
    over = name.endswith("!") or kind == "weekdays"
    return TimeStep(kind, units.get(kind, "day"), first, last, over)


def _read_word(text: str, kind: _Words) -> str:
    words = (value for word, value in kind if re.fullmatch(word, text, re.IGNORECASE))
    return next(words, "") or str(_read_number(text))


def _read_number(text: str) -> int:
    """A number in digits or Chinese numerals, whatever else stands there."""
    tens, ten, ones = text.partition("十")
    if ten:
        return 10 * _read_number(tens or "1") + _read_number(ones)
    return int("".join(f"{numeric(c):.0f}" for c in text if c.isnumeric()) or 0)


@cache
def load_grammar() -> Grammar:
    """The grammar that ships, English and Chinese together."""
    patterns: list[str] = []
    rows: dict[int, tuple[list[_Words], str, bool]] = {}
    around: dict[str, str] = {}
    for language in LANGUAGES:
        words: dict[str, _Words] = {}
        for line in load_rows(f"cues/times_{language}"):
            kind, _, rest = line[1:].partition(" ")
            if line.startswith("@"):
                listed = [word.partition(" = ") for word in rest.split(", ")]
                words.setdefault(kind, []).extend((word, value) for word, _, value in listed)
            elif line.startswith("+"):
                around[kind] = f"{around[kind]}|{rest}" if kind in around else rest
            else:
                pattern, arrow, form = re.split(" ([-~])> ", line)
                parts = _KIND.split(pattern)
                kinds = [words[kind] for kind in parts[1::2]]
                parts[1::2] = [f"({'|'.join(word for word, _ in kind)})" for kind in kinds]
                patterns.append(f"(?:{''.join(parts)})()")
                rows[max(rows, default=0) + len(kinds) + 1] = kinds, form, arrow == "-"
    each = re.compile(f"{_EDGE}(?:{'|'.join(patterns)}){_EDGE}", re.IGNORECASE)
    return Grammar(each, rows, {n: re.compile(p, re.IGNORECASE) for n, p in around.items()})
