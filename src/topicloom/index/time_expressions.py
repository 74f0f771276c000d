"""Time expressions as ranges of days: "last month", "上个月", "3 March"."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

from topicloom.prompts.loader import load_cues
from topicloom.state.cues import Cues
from topicloom.state.session import SearchRequest

_WEEKS_BACK = {"this week": 0, "last week": 1, "这周": 0, "本周": 0, "这个星期": 0}
_WEEKS_BACK |= {"上周": 1, "上个星期": 1, "上星期": 1, "上上周": 2}


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
    """The days that a time expression, English or Chinese, means; None if it says no time.

    `now` is the moment to count from, in the session's time zone.
    """
    text = expression.strip()
    if not text:
        return None
    if text.lower() in _WEEKS_BACK:
        return _monday_to_sunday(now.date() - timedelta(weeks=_WEEKS_BACK[text.lower()]))
    found = _parser(now.date()).get_date_data(_plain(text))
    if found is None or found.date_obj is None:
        return None
    return _range(found.date_obj.date(), found.period)


def _range(day: date, period: str) -> Days:
    if period == "year":
        return Days(date(day.year, 1, 1), date(day.year, 12, 31))
    if period == "month":
        last = calendar.monthrange(day.year, day.month)[1]
        return Days(day.replace(day=1), day.replace(day=last))
    if period == "week":
        return _monday_to_sunday(day)
    return Days(day, day)


def _monday_to_sunday(day: date) -> Days:
    monday = day - timedelta(days=day.weekday())
    return Days(monday, monday + timedelta(days=6))


_NUMERALS = {c: n for n, c in enumerate("〇一二三四五六七八九十")} | {"两": 2, "零": 0}
_UNITS = {"天": "days", "日": "days", "月": "months", "年": "years"}
_UNITS |= dict.fromkeys(("周", "星期", "礼拜"), "weeks")
_NUMBER = r"(\d+|[〇零一二两三四五六七八九十]{1,3})"
_AGO = re.compile(_NUMBER + r"\s*个?(天|日|周|星期|礼拜|月|年)(?:以?前)")
_MONTH_DAY = re.compile(r"(?:(\d{4})年)?" + _NUMBER + "月" + _NUMBER + "[日号]")
_SPOKEN = {
    "上个月": "last month",
    "上月": "last month",
    "去年": "last year",
    "前年": "2 years ago",
    "前天": "2 days ago",
}


def _plain(text: str) -> str:
    """Chinese expressions that dateparser does not read, in English."""
    for spoken, plain in _SPOKEN.items():
        text = text.replace(spoken, plain)
    text = _AGO.sub(lambda m: f"{_number(m[1])} {_UNITS[m[2]]} ago", text)
    return _MONTH_DAY.sub(_format_day, text)


def _format_day(found: re.Match[str]) -> str:
    month = calendar.month_name[min(max(_number(found[2]), 1), 12)]
    return f"{_number(found[3])} {month} {found[1] or ''}".strip()


def _number(text: str) -> int:
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.partition("十")
    if not ten:
        return _digits(text)
    return 10 * (_digits(tens) if tens else 1) + (_digits(ones) if ones else 0)


def _digits(text: str) -> int:
    return int("".join(str(_NUMERALS[c] % 10) for c in text))


@cache
def _parser(today: date) -> Any:
    # Imported here because it takes a third of a second.
    from dateparser.date import DateDataParser

    base = datetime(today.year, today.month, today.day, 12)
    settings = {"RELATIVE_BASE": base, "PREFER_DATES_FROM": "past"}
    return DateDataParser(languages=["en", "zh"], settings=settings)


_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_COUNT = r"(?:\d{1,3}|an?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_TIMES = re.compile(
    rf"""
      \d{{4}}-\d{{1,2}}(?:-\d{{1,2}})?(?!\d)
    | \b\d{{1,2}}(?:st|nd|rd|th)?\ (?:of\ )?{_MONTH}\b(?:,?\ \d{{4}}\b)?
    | \b{_MONTH}\ \d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\ \d{{4}}\b)?
    | (?<=\bin\ )(?:{_MONTH}\b(?:\ (?:of\ )?\d{{4}}\b)?|\d{{4}}\b)
    | \b(?:last|this)\ (?:week|month|year)\b
    | \b{_COUNT}\ (?:day|week|month|year)s?\ ago\b
    | \byesterday\b
    | (?<=\bon\ ){_WEEKDAY}\b | \blast\ {_WEEKDAY}\b
    | (?:\d{{4}}年)?(?:\d{{1,2}}|[一二三四五六七八九十]{{1,2}})月
      (?:(?:\d{{1,2}}|[一二三四五六七八九十]{{1,3}})[日号])?
    | (?:\d{{1,3}}|[一二两三四五六七八九十]{{1,3}})\ ?个?(?:天|周|星期|礼拜|月|年)以?前
    | 昨天|前天|上个月|上月|上上周|上周|上个星期|上星期|这周|本周|这个星期|去年|前年
    """,
    re.IGNORECASE | re.VERBOSE,
)


def asked_for(text: str, now: datetime) -> SearchRequest | None:
    """The search that a message asks for; None if it does not ask for what was said before."""
    if not _asking().found_in(text):
        return None
    return SearchRequest(query=text, when=time_in(text, now), include_archived=True)


def time_in(text: str, now: datetime) -> str | None:
    """The first time expression in a text that names past days; None if there is none."""
    for match in _TIMES.finditer(text):
        days = parse_when(match[0], now)
        if days is not None and days.first <= now.date():
            return match[0]
    return None


@cache
def _asking() -> Cues:
    return load_cues("asked_en", "asked_zh")
