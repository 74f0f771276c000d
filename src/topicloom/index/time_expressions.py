"""Time expressions as ranges of days: "last month", "上个月", "between March and May".

Their grammar is in `prompts/cues/times_*.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import NamedTuple
from unicodedata import normalize, numeric

from topicloom.prompts.loader import LANGUAGES, load_cues, load_rows
from topicloom.state.session import SearchRequest

UNITS = ("", "year", "season", "month", "week", "day")
"""Coarse before fine, no unit first; a season is several months of one year."""
FRAMES = {"months": "year", "days": "month", "weekdays": "week"}
"""What steps that number the parts of a frame need for one."""
_EDGE = r"(?:(?<![a-z0-9])|(?![a-z0-9]))"
"""No Latin word or number goes on across it; Han have no such edges."""
_KIND = re.compile(r"{([a-z]+)}")


class Step(NamedTuple):
    """A step to the time that is meant; `times_en.txt` says what its forms mean."""

    kind: str
    unit: str
    """What the step leads to."""
    first: int
    last: int
    over: bool
    """True if what is meant must have ended."""


Steps = tuple[Step, ...]
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
    """False if it means a time only where what is beside it says so."""


class Grammar(NamedTuple):
    """The tables of all languages."""

    pattern: re.Pattern[str]
    """Finds any row: a group for each word, and an empty one at its end."""
    rows: dict[int, tuple[list[_Words], str, bool]]
    """The kinds of words, the form, and if it is sure, of each row, by the group at its end."""
    around: dict[str, re.Pattern[str]]
    """What stands between and around expressions, by name."""

    def find(self, text: str) -> list[Expression]:
        """The expressions in a text, those beside each other that fit as one."""
        joined: list[Expression] = []
        for found in self._find_rows(text):
            both = self._join(text, joined[-1], found) if joined else None
            joined[-1:] = [both] if both else [*joined[-1:], found]
        return [found for found in joined if len(found.readings) == 1]

    def is_time(self, found: Expression, text: str) -> bool:
        """True if an expression means the days that it names, with what is beside it."""
        sure = found.sure or self.extend(found, text, "sure")
        return bool(sure) and not self.extend(found, text, "not")

    def are_linked(self, first: Expression, last: Expression, text: str) -> bool:
        """True if two expressions, one after the other, make a range."""
        alike = last.sure or first.readings[0][-1].unit == last.readings[0][-1].unit
        return alike and self.around["link"].fullmatch(text, first.end, last.start) is not None

    def extend(self, found: Expression, text: str, name: str) -> Expression | None:
        """An expression with what stands right beside it, if that is of some name."""
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
    """Steps in order; none if any does not fit. A weekday beside a date says nothing new."""
    if any(step.kind == "days" for step in steps):
        steps = tuple(step for step in steps if step.kind != "weekdays")
    steps = tuple(sorted(steps, key=lambda step: UNITS.index(step.unit)))
    return steps if all(FRAMES.get(b.kind) == a.unit for a, b in pairwise(steps)) else ()


def _parse_step(form: str) -> Step:
    name, *arguments = form.split()
    kind = name.rstrip("!+")
    units = {"back": arguments[0], "year": "year", "months": "season" if arguments[1:] else "month"}
    first, last = int(arguments[kind == "back"]), int(arguments[-1]) + name.endswith("+")
    if kind == "back" and first < 0 < last:  # "in a few weeks": the sign is of both
        first, last = -last, first
    over = name.endswith("!") or kind == "weekdays"
    return Step(kind, units.get(kind, "day"), first, last, over)


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


_ENDS = 1_000
"""Characters that are read at both ends of a text; what is pasted stands between."""


@dataclass(frozen=True, slots=True)
class Days:
    """A range of days, both ends included."""

    first: date
    last: date

    @classmethod
    def of(cls, ends: tuple[str, str] | None) -> Days | None:
        """The range between two days in ISO 8601, if there are any."""
        return cls(*map(date.fromisoformat, ends)) if ends else None

    @property
    def ends(self) -> tuple[str, str]:
        """The first and the last day, ISO 8601."""
        return self.first.isoformat(), self.last.isoformat()

    def __contains__(self, day: str) -> bool:
        first, last = self.ends
        return first <= day <= last

    def __str__(self) -> str:
        return " to ".join(dict.fromkeys(self.ends))


def parse_when(expression: str, now: datetime) -> Days | None:
    """The days that the first time expression in a text means; None if it says no time.

    What is past goes before what is to come. `now` is the moment to count from, in the session's
    time zone. A day, month or season without a year is the latest that has begun.
    """
    times = (days for _, days in _read(expression, now.date()))
    return min(times, key=lambda days: days.first > now.date(), default=None)


def asked_for(text: str, now: datetime) -> SearchRequest | None:
    """The search that a message asks for; None if it does not ask for what was said before."""
    if not load_cues("asked").found_in(text):
        return None
    return SearchRequest(query=text, when=time_in(text, now), include_archived=True)


def time_in(text: str, now: datetime) -> str | None:
    """The first time expression in a text that names past days; None if there is none.

    Two that make a range are one ("March to May"). Today is none: it is in view as a rule.
    """
    today = now.date()
    times = (t for t, days in _read(text, today) if days != Days(today, today))
    alone = ((t, parse_when(t, now)) for t in times)
    return next((t for t, days in alone if days and days.first <= today), None)


def _read(text: str, today: date) -> Iterator[tuple[str, Days]]:
    """The time expressions in a text that mean days, each with its days."""
    # Normalised, a character may be eighteen; "<>" stands for an expression in the grammar.
    text = _keep_ends(normalize("NFKC", _keep_ends(text)))
    text = " ".join(text.replace("<>", " ").split())
    grammar = load_grammar()
    found = grammar.find(text)[::-1]
    while found:
        first = found.pop()
        last = found.pop() if found and grammar.are_linked(first, found[-1], text) else first
        both = first._replace(end=last.end, sure=first.sure or last.sure)
        days = _resolve_range(first.readings[0], last.readings[0], today)
        if days is None or not grammar.is_time(both, text):
            continue
        if first is last and (since := grammar.extend(both, text, "since")):
            both, days = since, Days(days.first, max(days.last, today))
        yield text[both.start : both.end], days


def _keep_ends(text: str) -> str:
    return text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]} … {text[-_ENDS:]}"


def _resolve_range(first: Steps, last: Steps, today: date) -> Days | None:
    """From the beginning of one time to the end of another; the same twice is that one.

    What needs the coarser frame goes first; the other is the nearest to it (the 5th in "March 3
    to 5", the March in "between March and May").
    """
    coarse = [UNITS.index(FRAMES.get(steps[0].kind, "")) for steps in (first, last)]
    try:
        if coarse[0] < coarse[1]:
            start = _resolve(first, today, today)
            end = start and _resolve(last, today, start.first, ahead=True)
        else:
            end = _resolve(last, today, today)
            start = end if first is last else end and _resolve(first, today, end.last)
    except (ValueError, OverflowError):  # years that no calendar has
        return None
    return start and end and Days(min(start.first, end.first), max(start.last, end.last))


def _resolve(steps: Steps, today: date, near: date, *, ahead: bool = False) -> Days | None:
    """The days that steps mean: the latest that have begun on a day, or the first after it."""
    step, frame = steps[0], FRAMES.get(steps[0].kind)
    if frame is None:
        backs = (step.first, step.last) if step.kind == "back" else [today.year - step.first]
        frames = [_find_frame(step.unit, today, back) for back in backs]
        return _narrow(Days(frames[-1].first, frames[0].last), steps[1:])
    over = any(step.over for step in steps)
    latest = near - timedelta(over)
    for back in range(9):  # years from one 29 February to the next, and one
        days = _narrow(_find_frame(frame, near, -back if ahead else back), steps)
        if days and (
            days.first >= near if ahead else (days.last if over else days.first) <= latest
        ):
            return days
    return None


def _find_frame(unit: str, day: date, back: int) -> Days:
    """The calendar unit that lies so many before that of a day."""
    if unit == "year":
        return _find_months(day.year - back, 1, 12)
    if unit == "month":
        return _find_months(day.year, day.month - back, day.month - back)
    size = 7 if unit == "week" else 1
    first = day - timedelta(size * back + (day.weekday() if unit == "week" else 0))
    return Days(first, first + timedelta(size - 1))


def _find_months(year: int, first: int, last: int) -> Days:
    """Whole months; the 13th of a year is the first of the next."""
    start, end = (date(year + m // 12, m % 12 + 1, 1) for m in (first - 1, last))
    return Days(start, end - timedelta(1))


def _narrow(frame: Days, steps: Steps) -> Days | None:
    """The part of a frame that steps lead to; None where a month has no such day."""
    for step in steps:
        if step.kind == "months":
            frame = _find_months(frame.first.year, step.first, step.last)
            continue
        first, last = (frame.first + timedelta(n - 1) for n in (step.first, step.last))
        if first > frame.last:
            return None
        frame = Days(first, min(last, frame.last))
    return frame
