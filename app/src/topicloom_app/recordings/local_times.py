"""Times as phones and pages write them: in any language, with the day before the month or after it.

The names of months and of halves of the day, and the order of a date, are those of the Unicode
CLDR, as dateparser has them. Which language a file is in is found out from all of its times
together. If two readings remain, none of them is taken.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache
from itertools import groupby, pairwise, product
from operator import itemgetter

import regex

_COMMON = 60
"""Languages that are used most: "mar" is March, although it is May in one of the others."""
_LONGEST = 80
"""Characters of a text that may be a time."""
_MOST_WORDS = 20
"""Words of such a text, with what they give together."""
_MOST = 200
"""Times by which the language of a file is found out."""
_PART = regex.compile(r"[\p{L}\p{M}]+|\d+")
_TOUCHING = regex.compile(r"[\p{L}\p{M}]+$")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?")
_OFFSET = re.compile(r"([+-])(\d{1,2}):?(\d{2})?")
_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_HALVES = {"am": 0, "pm": 12}
_CHINESE = {"凌晨": 0, "清晨": 0, "早上": 0, "中午": 12, "晚上": 12}
"""Parts of the day that CLDR has in place of halves, and dateparser has not."""

_Meaning = tuple[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Tongue:
    """A language, by what it has in times."""

    words: Mapping[str, _Meaning]
    """Each word with what it is: a month and its number, a half of the day and its first hour."""
    names: frozenset[str]
    """Those by which it is known: not AM and PM, and not the beginning of a month's name."""
    orders: frozenset[str]
    """Of day, month and year, as its countries have them: `DMY`, `MDY`, `YMD`."""
    common: bool


@dataclass(frozen=True, slots=True)
class _Said:
    """A time as it is written, in parts."""

    numbers: tuple[int, ...]
    """Those of the date; those of the clock too, if it has no colon."""
    clock: tuple[int, ...]
    slashed: bool
    words: tuple[str, ...]
    """Words, and what up to four in a row give together (`p. m.`), longest first."""
    words_at_clock: frozenset[str]
    """The words next to a clock of one digit."""
    zone: str
    """The abbreviation of a zone, such as CEST."""
    offset: int | None
    """Seconds from UTC, if the text tells them."""


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to read the times of a file."""

    words: Mapping[str, _Meaning]
    month_first: bool
    """True if the month comes first between slashes."""
    year_first: bool
    """True if a year of two digits comes first."""
    unusual: bool
    """True if the language seldom writes so."""
    known: int
    """Words of the file that the language has."""
    common: bool

    def read(self, said: _Said) -> datetime | None:
        """The time without a zone; None if it is none in this language."""
        known = {word: self.words[word] for word in said.words if word in self.words}
        named = [word for word, (kind, _) in known.items() if kind == "month"]
        months = {known[word][1] for word in named if not any(word in w != word for w in named)}
        size = 3 - bool(months)
        date, clock = said.numbers[:size], said.clock or said.numbers[size:]
        if len(months) > 1 or len(date) < size or len(clock) not in (0, 2, 3):
            return None
        if said.clock and len(said.numbers) > size:
            return None
        year_first = date[0] > 31 or (self.year_first and date[-1] <= 31)
        year, day = (date[0], date[-1]) if year_first else (date[-1], date[0])
        month = months.pop() if months else date[1]
        if self.month_first and said.slashed and size == 3 and not year_first:
            month, day = day, month
        year += 2000 * (year < 100) - 543 * (year > 2400)  # of Thailand
        hour, minute, second = (*clock, 0, 0, 0)[:3]
        half = next((hours for kind, hours in known.values() if kind == "half"), None)
        if half is not None and hour <= 12:
            hour = hour % 12 + half
        elif hour <= 12 and not said.words_at_clock <= known.keys():
            return None  # it may be a half of the day
        try:
            return datetime(year, month, day, hour, minute, second) if year > 1969 else None
        except ValueError:
            return None


class LocalTimes:
    """How a file writes its times, found out from all of them."""

    def __init__(
        self, texts: Iterable[str], *, zone: tzinfo | None = None, day_first: bool | None = None
    ) -> None:
        """Find out in which language some times are, and whether the day or the month comes first.

        Args:
            texts: The times, in the order of the file.
            zone: Where they were written: it has the first say on what an abbreviation means. None
                for the zone of this machine.
            day_first: Whether the day comes first between slashes, if that is known.
        """
        self._zone = zone
        said = list(dict.fromkeys(map(_split, texts)))[:_MOST]
        ways = dict[tuple[datetime | None, ...], tuple[_Rate, _Way]]()
        for way in _list_ways({word for each in said for word in each.words}):
            if day_first is None or way.month_first is not day_first:
                moments = tuple(map(way.read, said))
                rated = _rate(moments, way), way
                ways[moments] = min(ways.get(moments, rated), rated, key=itemgetter(0))
        best = min((rate for rate, _ in ways.values()))
        ways_left = [way for rate, way in ways.values() if rate == best]
        self._ways = [way for way in ways_left if way.common] or ways_left

    @property
    def ambiguous(self) -> bool:
        """True if the times can be read in several ways, and nothing tells which one is right."""
        return len(self._ways) > 1

    def read(self, text: str) -> datetime | None:
        """The moment of a time, without a zone if the text has none; None if it is unknown."""
        if len(self._ways) != 1 or len(text) > _LONGEST:
            return None
        said = _split(text)
        found = self._ways[0].read(said)
        if found is None:
            return None
        offset, local = said.offset, localize(found, self._zone)
        if offset is None and said.zone:
            if said.zone == local.tzname():
                return local
            offset = _list_zones()[said.zone]
        if offset is None:
            return found
        return found.replace(tzinfo=timezone(timedelta(seconds=offset)))


def looks_like_time(text: str) -> bool:
    """True for a text of a date and a clock and little else, in any language."""
    said = _split(text) if len(text) <= _LONGEST else None
    if said is None or len(said.words) > _MOST_WORDS:
        return False
    return len(said.numbers) in ((2, 3) if said.clock else (4, 5, 6))


def localize(moment: datetime, zone: tzinfo | None) -> datetime:
    """A moment as the clocks of a zone show it, unless it has another one than UTC already.

    Args:
        moment: One without a zone was written in that zone.
        zone: None for the zone of this machine.
    """
    if moment.utcoffset():
        return moment
    if moment.tzinfo is None and zone is not None:
        return moment.replace(tzinfo=zone)
    return moment.astimezone(zone)


_Rate = tuple[int, int, int, bool]


def _rate(moments: Sequence[datetime | None], way: _Way) -> _Rate:
    """How badly times are read.

    By those that are none, words that are known, steps against the way of the file, and whether its
    language seldom writes so.
    """
    pairs = list(pairwise(moment for moment in moments if moment))
    back = sum(later < earlier for earlier, later in pairs)
    steps = min(back, sum(later > earlier for earlier, later in pairs))
    return moments.count(None), -way.known, steps, way.unusual


def _list_ways(words: set[str]) -> Iterator[_Way]:
    """All ways that differ in what some words mean."""
    seen = set[object]()
    for tongue in _load_tongues():
        known = words & tongue.words.keys()
        said = frozenset((word, tongue.words[word]) for word in known)
        own = len(words & tongue.names)
        years = own > 0 and tongue.orders == {"YMD"}
        for m, y in product((False, True), repeat=2):
            unusual = y is not years or m not in {order == "MDY" for order in tongue.orders}
            way = _Way(tongue.words, m, y, unusual, own, tongue.common)
            if (key := (said, m, y, unusual)) not in seen:
                seen.add(key)
                yield way


@lru_cache(1_000)
def _split(text: str) -> _Said:
    plain = unicodedata.normalize("NFKC", text[:_LONGEST]).casefold().replace("\u2212", "-")
    clock, before, after, offset = _CLOCK.search(plain), plain, "", None
    if clock:
        before, after = plain[: clock.start()], plain[clock.end() :]
        if found := _OFFSET.search(after):
            seconds = int(found[2]) * 3600 + int(found[3] or 0) * 60
            offset = -seconds if found[1] == "-" else seconds
            after = after[: found.start()]
    parts = [_PART.findall(before), _PART.findall(after)]
    last = parts[-1] or parts[0]
    zone = last.pop().upper() if last and last[-1].upper() in _list_zones() else ""
    beside = _TOUCHING.findall(before) + [word for word in parts[1][:1] if not word.isdecimal()]
    numbers = (int(part) for row in parts for part in row if part.isdecimal())
    return _Said(
        tuple(numbers),
        tuple(int(number) for number in clock.groups() if number) if clock else (),
        "/" in plain,
        tuple(sorted({word for row in parts for word in _join_words(row)}, key=_order)),
        frozenset() if clock is None or clock[1][0] == "0" else frozenset(beside),
        zone,
        offset,
    )


def _join_words(parts: Iterable[str]) -> Iterator[str]:
    """Words, and what up to four of them in a row give together."""
    for is_number, run in groupby(parts, str.isdecimal):
        row = [] if is_number else list(run)
        yield from ("".join(row[a : a + n]) for n in (1, 2, 3, 4) for a in range(len(row)))


def _order(word: str) -> tuple[int, str]:
    return -len(word), word


@cache
def _list_zones() -> Mapping[str, int]:
    """Abbreviations of zones, and how many seconds they are from UTC."""
    from dateparser.timezones import timezone_info_list

    named = (named for table in timezone_info_list for named in table["timezones"])
    return {name: seconds for name, seconds in named if name.isalpha() and len(name) > 2}


@cache
def _load_tongues() -> tuple[_Tongue, ...]:
    """All languages, those that are used most first."""
    # It takes half a second, and few files need it.
    from dateparser.data.languages_info import language_locale_dict, language_order
    from dateparser.languages.loader import default_loader

    kinds = {
        **dict.fromkeys(_DAYS, ("day", 0)),
        "skip": ("other", 0),
        **{word: ("half", hour) for word, hour in _HALVES.items()},
        **{word: ("month", number) for number, word in enumerate(_MONTHS, 1)},
    }
    everywhere = {word: ("half", hour) for word, hour in {**_HALVES, **_CHINESE}.items()}
    found = list[_Tongue]()
    for place, language in enumerate(language_order):
        locales = language, *language_locale_dict[language]
        tables = [default_loader.get_locale(name).info for name in locales]
        words = everywhere | {
            "".join(_PART.findall(unicodedata.normalize("NFKC", name).casefold())): meaning
            for kind, meaning in kinds.items()
            for table in tables
            for name in table.get(kind, ())
        }
        orders = {table.get("date_order", "DMY") for table in tables}
        names = words.keys() - everywhere.keys()
        words = _list_beginnings(words) | words
        found.append(_Tongue(words, frozenset(names), frozenset(orders), place < _COMMON))
    return tuple(found)


def _list_beginnings(words: Mapping[str, _Meaning]) -> dict[str, _Meaning]:
    """The beginnings of the names of months that are those of one month alone."""
    found = dict[str, set[_Meaning]]()
    for word, meaning in words.items():
        if meaning[0] == "month":
            for end in range(3, len(word)):
                found.setdefault(word[:end], set()).add(meaning)
    return {short: meanings.pop() for short, meanings in found.items() if len(meanings) == 1}
