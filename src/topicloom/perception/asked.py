"""Whether a message itself asks for what was said before, and when that was.

Only the user's asking brings back what was archived (spec 000, 4.8: "find me what we discussed last
month"). A main model that understands the message says so by `activate_topic`; this says so where
the words leave no doubt, so that it holds without a model as well.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache

from topicloom.perception.when import parse_when
from topicloom.prompts.loader import cue_list
from topicloom.state.cues import Cues
from topicloom.state.session import SearchRequest

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
    """The search that a message asks for; None if it does not ask for what was said before.

    Args:
        text: The message.
        now: The moment to count from, in the session's time zone.
    """
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
    return cue_list("asked_en", "asked_zh")
