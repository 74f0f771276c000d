"""Time expressions as ranges of days: "last month", "上个月", "between March and May".

Their grammar is in `prompts/cues/times_*.txt`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from unicodedata import normalize

from topicloom.prompts.loader import load_cues
from topicloom.search.time_grammar import FRAMES, UNITS, Steps, load_grammar
from topicloom.state.session import SearchRequest

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
    """The search that a message asks for; None if it does not ask about earlier messages."""
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
