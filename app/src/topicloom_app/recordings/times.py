"""Times as other programs write them: text in many forms, or numbers in many units."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

from topicloom_app.recordings.local_times import LocalTimes, localize

_UNITS = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6), (1e20, 1e9))
"""Seconds, milliseconds, microseconds and nanoseconds: a number below the first is in that unit.

1e11 seconds are the year 5138 and 1e11 milliseconds 1973, so no time of a chat is in two units.
"""
_NUMBER = re.compile(r"-?\d{1,19}(?:\.\d{1,12})?")


def read_time(value: object) -> str:
    """A time in ISO 8601, without a zone if it names none; "" if it means no time.

    A number may count seconds, milliseconds, microseconds or nanoseconds since 1970.
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) and len(value.strip()) > 8:
        value = float(value)  # shorter ones are dates, such as 20250302
    if isinstance(value, bool):
        return ""
    if isinstance(value, int | float):
        return format_seconds(_to_seconds(value))
    found = _find_moment(value) if isinstance(value, str) else None
    return found.isoformat() if found else ""


def place_time(time: str, zone: tzinfo | None) -> str:
    """A time in ISO 8601 by the clocks of a zone, unless it names another one than UTC.

    Args:
        time: In ISO 8601. Without a zone, it was written where the user lives.
        zone: Where the user lives; None for the zone of this machine.
    """
    moment = parse_iso(time)
    if moment is None or moment.utcoffset():
        return time  # as it is written
    with suppress(OverflowError, OSError, ValueError):  # the year 1 has no day before it
        return localize(moment, zone).isoformat()
    return time


def _to_seconds(number: float) -> float:
    try:
        size = abs(float(number))
    except OverflowError:
        return math.inf
    return next((number / unit for limit, unit in _UNITS if size < limit), math.inf)


def format_seconds(seconds: float) -> str:
    """Seconds since the epoch in ISO 8601, UTC; "" if there is no such time."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return ""


def iso_time(text: str) -> str:
    """A recorded time in ISO 8601, UTC where it has no zone; unchanged if it cannot be read."""
    found = parse_moment(text)
    return found.isoformat() if found else text


def parse_moment(text: str | None) -> datetime | None:
    """The moment that a recorded time means, UTC where it has no zone; None if it is unknown."""
    found = _find_moment(text or "")
    return found.replace(tzinfo=found.tzinfo or UTC) if found else None


@lru_cache(1_000)
def _find_moment(text: str) -> datetime | None:
    return parse_iso(text) or LocalTimes([text]).read(text)


def parse_iso(text: str) -> datetime | None:
    """The moment of a time in ISO 8601, without a zone if the text has none; None if it is none."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
