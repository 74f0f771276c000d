"""Time expressions, English and Chinese, as ranges of days."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given, settings, strategies as st
from tables import each_row

from topicloom.search.time_expressions import Days, parse_when

# A Wednesday.
NOW = datetime(2026, 3, 18, 9, 30, tzinfo=timezone(timedelta(hours=8)))


def span(expression: str, now: datetime = NOW) -> tuple[str, str] | None:
    days = parse_when(expression, now)
    return (days.first.isoformat(), days.last.isoformat()) if days else None


@each_row(
    ("expression", "first", "last"),
    [
        ("today", "2026-03-18", "2026-03-18"),
        ("yesterday", "2026-03-17", "2026-03-17"),
        ("Yesterday ", "2026-03-17", "2026-03-17"),
        ("3 days ago", "2026-03-15", "2026-03-15"),
        ("two days ago", "2026-03-16", "2026-03-16"),
        ("this week", "2026-03-16", "2026-03-22"),
        ("last week", "2026-03-09", "2026-03-15"),
        ("Last Week", "2026-03-09", "2026-03-15"),
        ("last month", "2026-02-01", "2026-02-28"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("2026-03-03", "2026-03-03", "2026-03-03"),
        ("3 March", "2026-03-03", "2026-03-03"),
        ("March 3, 2025", "2025-03-03", "2025-03-03"),
        ("March 2025", "2025-03-01", "2025-03-31"),
        ("2024", "2024-01-01", "2024-12-31"),
        ("February 2024", "2024-02-01", "2024-02-29"),
        ("今天", "2026-03-18", "2026-03-18"),
        ("昨天", "2026-03-17", "2026-03-17"),
        ("前天", "2026-03-16", "2026-03-16"),
        ("三天前", "2026-03-15", "2026-03-15"),
        ("十天前", "2026-03-08", "2026-03-08"),
        ("十二天前", "2026-03-06", "2026-03-06"),
        ("二十一天以前", "2026-02-25", "2026-02-25"),
        ("3天前", "2026-03-15", "2026-03-15"),
        ("这周", "2026-03-16", "2026-03-22"),
        ("上周", "2026-03-09", "2026-03-15"),
        ("上个星期", "2026-03-09", "2026-03-15"),
        ("上上周", "2026-03-02", "2026-03-08"),
        ("上个月", "2026-02-01", "2026-02-28"),
        ("上月", "2026-02-01", "2026-02-28"),
        ("去年", "2025-01-01", "2025-12-31"),
        ("前年", "2024-01-01", "2024-12-31"),
        ("3月3日", "2026-03-03", "2026-03-03"),
        ("三月三号", "2026-03-03", "2026-03-03"),
        ("2025年12月1日", "2025-12-01", "2025-12-01"),
    ],
)
def test_what_expressions_mean(expression: str, first: str, last: str) -> None:
    assert span(expression) == (first, last)


@each_row("expression", ["May", "5 May", "五月六日"])
def test_a_date_without_a_year_lies_in_the_past(expression: str) -> None:
    days = parse_when(expression, NOW)
    assert days is not None
    assert days.first.year == 2025


@each_row("expression", ["", "   ", "the garden", "西红柿", "soon-ish", "?!", "\x00"])
def test_what_says_no_time(expression: str) -> None:
    assert parse_when(expression, NOW) is None


@each_row("expression", ["二三十天前", "一二十天前", "九九九年前", "9999年前", "99999 years ago"])
def test_odd_numbers_are_no_error(expression: str) -> None:
    days = parse_when(expression, NOW)
    assert days is None or days.first <= days.last


def test_the_same_words_mean_other_days_on_another_day() -> None:
    assert span("yesterday") == ("2026-03-17", "2026-03-17")
    assert span("yesterday", NOW + timedelta(days=1)) == ("2026-03-18", "2026-03-18")


def test_the_day_is_that_of_the_session_s_time_zone() -> None:
    late = datetime(2026, 3, 18, 23, 59, tzinfo=timezone(timedelta(hours=-8)))
    assert span("today", late) == ("2026-03-18", "2026-03-18")


def test_a_range_knows_its_days() -> None:
    days = Days(date(2026, 3, 3), date(2026, 3, 5))
    assert [d in days for d in ("2026-03-02", "2026-03-03", "2026-03-05", "2026-03-06")] == [
        False,
        True,
        True,
        False,
    ]
    assert str(days) == "2026-03-03 to 2026-03-05"
    assert str(Days(date(2026, 3, 3), date(2026, 3, 3))) == "2026-03-03"


numbers = st.text("0123456789〇零一二三四五六七八九十两", max_size=4)
CHINESE = "年 月 日 号 天 个 周 星期 前 以前 上个 去年".split()
OTHERS = "last month week ago days March Friday between and T Z + - / :".split()
pieces = st.sampled_from([*CHINESE, *OTHERS, " "])


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(numbers | pieces, max_size=6).map("".join) | st.text(max_size=12))
@example("13月45日")
@example("0年0月0日")
@example("十十天前")
@example("二三十天前")
def test_no_expression_is_an_error(expression: str) -> None:
    days = parse_when(expression, NOW)
    assert days is None or days.first <= days.last
