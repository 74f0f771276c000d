"""Tables of times in questions, English and Chinese, with days worked out by hand."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import example, given, settings, strategies as st
from tables import each_row

from topicloom.prompts.loader import LANGUAGES, load_rows
from topicloom.search.time_expressions import parse_when, time_in

WEDNESDAY = datetime(2026, 3, 18, 9, 30, tzinfo=UTC)
FRIDAY = datetime(2026, 8, 14, 9, 30, tzinfo=UTC)
NEW_YEAR = datetime(2027, 1, 1, 0, 5, tzinfo=UTC)  # a Friday


def span(text: str, now: datetime) -> str:
    """The days of a text, with this year's left out of ISO dates, as the tables below have them."""
    return str(parse_when(text, now)).replace(f"{now.year}-", "")


ON_WEDNESDAY = {
    # Holidays.
    "Christmas": "2025-12-24 to 2025-12-26",
    "last Christmas": "2025-12-24 to 2025-12-26",
    "on Christmas Eve 2024": "2024-12-24",
    "New Year's Day": "01-01",
    "Halloween": "2025-10-31",
    "the weekend": "03-14 to 03-15",
    "国庆节": "2025-10-01 to 2025-10-07",
    "国庆长假期间": "2025-10-01 to 2025-10-07",
    "前年国庆": "2024-10-01 to 2024-10-07",
    "春节": "01-01 to 02-28",
    "圣诞节": "2025-12-24 to 2025-12-26",
    "前阵子": "01-17 to 03-15",
    "国庆路12号": "None",
    "圣诞树": "None",
    "happy Christmas": "None",
    "Easter eggs": "None",
    "before Christmas": "None",
    "at Christmas": "2025-12-24 to 2025-12-26",
    "over the Easter break": "03-01 to 04-30",
    "What did I say I would get Mum for Christmas?": "None",
    "about my plans for the Easter holidays": "None",
    "Where is the Christmas dinner?": "None",
    "between Christmas and Easter": "2025-12-24 to 04-30",
    "Christmas and Easter": "2025-12-24 to 04-30",
    "过年的时候": "01-01 to 02-28",
    "过年前后": "01-01 to 02-28",
    "去年过年": "2025-01-01 to 2025-02-28",
    "春节我们吃了什么？": "01-01 to 02-28",
    "从国庆到元旦": "2025-10-01 to 01-01",
    "我们讨论过春节去哪儿吗？": "None",
    "我说过圣诞节送妈妈什么吗？": "None",
    "三十五一斤": "None",
    "二十五一天": "None",
    "五一期间": "2025-05-01 to 2025-05-05",
    # Days and weeks.
    "last night": "03-17 to 03-18",
    "the other day": "03-11 to 03-16",
    "the day before yesterday": "03-16",
    "last Wednesday": "03-11",
    "last weekend": "03-14 to 03-15",
    "the weekend before last": "03-07 to 03-08",
    "the week before last": "03-02 to 03-08",
    "the 3rd": "03-03",
    "the 20th": "02-20",
    "the 31st": "01-31",
    "Mon": "03-16",
    "21 hours ago": "03-17 to 03-18",
    "the past 2 days": "03-16 to 03-18",
    "in 3 days": "03-21",
    "上周三": "03-11",
    "上上周五": "03-06",
    "上礼拜天": "03-15",
    "这周一": "03-16",
    "周三": "03-11",
    "星期二": "03-17",
    "上周末": "03-14 to 03-15",
    "3号": "03-03",
    "二十号": "02-20",
    "31号": "01-31",
    "大前天": "03-15",
    "昨晚": "03-17 to 03-18",
    "前天晚上": "03-16",
    "前几天": "03-11 to 03-16",
    "前两天": "03-14 to 03-17",
    "过去三天": "03-15 to 03-18",
    "两个小时前": "03-17 to 03-18",
    # Months and what is in them.
    "this month": "03-01 to 03-31",
    "early March": "03-01 to 03-10",
    "mid-February": "02-11 to 02-20",
    "end of last month": "02-21 to 02-28",
    "December": "2025-12-01 to 2025-12-31",
    "a couple of months ago": "2025-12-01 to 01-31",
    "several weeks ago": "01-26 to 03-08",
    "03/04/2026": "03-04",
    "15.1.2026": "01-15",
    "这个月3号": "03-03",
    "上个月3号": "02-03",
    "上个月底": "02-21 to 02-28",
    "月初": "03-01 to 03-10",
    "二月中旬": "02-11 to 02-20",
    "十二月": "2025-12-01 to 2025-12-31",
    "两三个月前": "2025-12-01 to 01-31",
    "几周前": "01-26 to 03-08",
    # Seasons, years and parts of them.
    "last spring": "2025-03-01 to 2025-05-31",
    "last winter": "2025-12-01 to 02-28",
    "in the fall": "2025-09-01 to 2025-11-30",
    "the summer of 2024": "2024-06-01 to 2024-08-31",
    "the beginning of the year": "01-01 to 03-31",
    "late last year": "2025-10-01 to 2025-12-31",
    "Q3 2025": "2025-07-01 to 2025-09-30",
    "May last year": "2025-05-01 to 2025-05-31",
    "two and a half years ago": "2023-01-01 to 2024-12-31",
    "年初": "01-01 to 03-31",
    "去年夏天": "2025-06-01 to 2025-08-31",
    "前年冬天": "2024-12-01 to 2025-02-28",
    "去年5月": "2025-05-01 to 2025-05-31",
    "去年年底": "2025-11-01 to 2025-12-31",
    "去年下半年": "2025-07-01 to 2025-12-31",
    "二〇二五年三月": "2025-03-01 to 2025-03-31",
    "2025年第三季度": "2025-07-01 to 2025-09-30",
    "半年前": "2025-08-01 to 2025-10-31",
    "两年前": "2024-01-01 to 2024-12-31",
    "两年多前": "2023-01-01 to 2024-12-31",
    # Ranges.
    "between March and May": "2025-03-01 to 2025-05-31",
    "from January to March": "01-01 to 03-31",
    "November to February": "2025-11-01 to 02-28",
    "March 3 to 5": "03-03 to 03-05",
    "3-5 March": "03-03 to 03-05",
    "2026-03-01 to 2026-03-10": "03-01 to 03-10",
    "Monday to Wednesday": "03-09 to 03-11",
    "since February": "02-01 to 03-18",
    "三月到五月": "2025-03-01 to 2025-05-31",
    "去年十一月到今年二月": "2025-11-01 to 02-28",
    "3月3号到5号": "03-03 to 03-05",
    "周一到周三": "03-09 to 03-11",
    "二月以来": "02-01 to 03-18",
    # Numbers that are not quite told.
    "十几天前": "02-27 to 03-07",
    "二十几天前": "02-17 to 02-25",
    "几十天前": "2025-12-18 to 02-26",
    "十几年前": "2007-01-01 to 2015-12-31",
    "五十几天前": "None",
}
IN_SUMMER = {
    "last summer": "2025-06-01 to 2025-08-31",
    "this summer": "06-01 to 08-31",
    "last March": "03-01 to 03-31",
    "between March and May": "03-01 to 05-31",
    "last Friday": "08-07",
    "去年三月到五月": "2025-03-01 to 2025-05-31",
    "夏天": "06-01 to 08-31",
    "上周五": "08-07",
}
AT_NEW_YEAR = {
    "yesterday": "2026-12-31",
    "last month": "2026-12-01 to 2026-12-31",
    "this week": "2026-12-28 to 01-03",
    "29 February": "2024-02-29",
    "this winter": "2026-12-01 to 02-28",
    "上个月31号": "2026-12-31",
    "31号": "2026-12-31",
    "上周三": "2026-12-23",
    "去年冬天": "2026-12-01 to 02-28",
}


def test_no_word_of_a_kind_looks_ahead() -> None:
    # A word is read once more by itself, without what stands behind it.
    rows = [row for language in LANGUAGES for row in load_rows(f"cues/times_{language}")]
    assert [row for row in rows if row.startswith("@") and "(?=" in row] == []


@each_row(
    ("now", "text", "days"),
    [
        (now, text, days)
        for now, table in ((WEDNESDAY, ON_WEDNESDAY), (FRIDAY, IN_SUMMER), (NEW_YEAR, AT_NEW_YEAR))
        for text, days in table.items()
    ],
)
def test_what_expressions_mean(now: datetime, text: str, days: str) -> None:
    assert span(text, now) == days
    for other in (text.upper(), f"  {text}?", "".join(map(_widen, text))):
        assert span(other, now) == days


def _widen(char: str) -> str:
    return chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char


@each_row(
    ("text", "said"),
    [
        ("What did we decide last spring about the roof?", "last spring"),
        ("What did I tell you the other day about Tom?", "the other day"),
        ("What did we discuss between March and May?", "March and May"),
        ("What did I say in May about the car?", "May"),
        ("What did we plan for next week, on Monday?", None),
        ("What did we plan on Monday for next week?", "Monday"),
        ("Did I mention since last week that I moved?", "since last week"),
        ("上周三我们聊了什么？", "上周三"),
        ("我3号跟你说的那家店叫什么？", "3号"),
        ("去年夏天我们讨论过的旅行", "去年夏天"),
        ("我们从三月到五月聊了些什么", "三月到五月"),
        ("我前几天提到的书", "前几天"),
        ("Is each <> closed, as I asked last week?", "last week"),
        ("每个＜＞都要闭合，我上周说的是哪一个？", "上周"),
    ],
)
def test_times_are_found_in_questions(text: str, said: str | None) -> None:
    assert time_in(text, WEDNESDAY) == said


@each_row(
    "text",
    [
        "May I ask what we said?",
        "You may not remember it",
        "version 3 may fail",
        "what I said about the march on the capital",
        "soldiers march 10 miles",
        "I fall asleep when I read",
        "the spring in my mattress",
        "the second one of the list",
        "a second, please",
        "the 3rd page",
        "the 15th century",
        "open 24/7",
        "2/3 of it",
        "March Street",
        "every Monday",
        "what I wrote before March",
        "next summer",
        "see you tomorrow",
        "today",
        "地铁3号线",
        "南三环西路4号",
        "3号楼",
        "第3号",
        "想得很周到",
        "周围有什么",
        "月亮和月饼",
        "每周三",
        "每天",
        "目前天气好",
        "以后天天来",
        "说明天线坏了",
        "三月之前",
        "一天三次",
        "明年春天",
        "今天",
    ],
)
def test_words_that_only_look_like_times_are_none(text: str) -> None:
    assert time_in(text, WEDNESDAY) is None


words = st.sampled_from(
    [
        *" ,-/.?",
        *ON_WEDNESDAY,
        *"since before from to and the in on of 3 31st 2025 号 到 前".split(),
    ]
)
texts = st.lists(words | st.text(max_size=4), max_size=5).map("".join)
days_of_any_year = st.dates(date(1900, 1, 1)).map(lambda d: datetime(d.year, d.month, d.day))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(texts, days_of_any_year)
def test_any_text_has_days_in_order_or_none(text: str, now: datetime) -> None:
    days = parse_when(text, now)
    assert days is None or days.first <= days.last


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(texts, days_of_any_year)
@example("the summer of 2024年初", datetime(2000, 1, 1))
def test_what_is_found_means_past_days_by_itself(text: str, now: datetime) -> None:
    said = time_in(text, now)
    days = parse_when(said, now) if said else None
    assert (days is None) == (said is None)
    assert days is None or days.first <= now.date()


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(texts.filter(str.isascii), days_of_any_year)
def test_case_and_width_do_not_count(text: str, now: datetime) -> None:
    days = parse_when(text, now)
    assert parse_when(text.swapcase(), now) == days
    assert parse_when("".join(map(_widen, text)), now) == days


@pytest.mark.slow
def test_what_is_pasted_between_is_not_read() -> None:
    asked = "What did I say last week about this?\n" + "on 3 March 2020 it rained. " * 100_000
    assert time_in(asked, WEDNESDAY) == "last week"
    # One character that is eighteen as it is read.
    blown_up = "\ufdfa" * 900
    assert time_in(f"last week {blown_up} on 3 March 2020", WEDNESDAY) == "last week"
    assert time_in(f"{blown_up} on 3 March 2020", WEDNESDAY) == "3 March 2020"
    assert time_in(f"{blown_up} on 3 March 2020 {blown_up}", WEDNESDAY) is None


def test_several_weeks_ahead_are_not_behind() -> None:
    days = parse_when("in a few weeks", datetime(2026, 11, 22, 12))
    assert days is not None
    assert days.first > date(2026, 11, 22)
    assert time_in("what happens in a few weeks", datetime(2026, 11, 22, 12)) is None
