"""Times of phones and pages: a hundred locales as CLDR writes them, and what tells too little."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from babel.dates import format_datetime
from tables import each_row

from topicloom_app.recordings.local_times import LocalTimes

LOCALES = """
af am ar ar_EG ar_MA as az be bg bn bs ca cs cy da de de_AT de_CH el en en_AU en_CA en_GB en_IE
en_IN en_NZ en_ZA es es_AR es_MX es_PA es_US et eu fa fi fil fr fr_BE fr_CA fr_CH ga gl gu ha he
hi hr hu hy id ig is it it_CH ja ka kk km kn ko ky lo lt lv mk ml mn mr ms my nb ne nl nl_BE nn
or pa pl ps pt pt_PT ro ru si sk sl so sq sr sr_Latn sv sw ta te th tr uk ur uz vi yue zh
zh_Hant zh_Hant_HK
""".split()
YEAR = [
    datetime(2026, month, day, hour, 15)
    for month in range(1, 13)
    for day, hour in ((3, 9), (12, 12), (28, 21))
]


def test_a_hundred_locales() -> None:
    assert len(LOCALES) >= 100


@pytest.mark.slow
@each_row("locale", LOCALES)
@each_row("form", ["short", "medium"])
def test_a_year_in_each_locale(locale: str, form: str) -> None:
    """Every time is read as it was written."""
    texts = [format_datetime(moment, form, locale=locale) for moment in YEAR]
    times = LocalTimes(texts)
    assert [times.read(text) for text in texts] == YEAR


@pytest.mark.slow
@each_row("locale", [name for name in LOCALES if name not in ("eu", "ko", "ne")])
@each_row("form", ["short", "medium", "long"])
@each_row("moment", [datetime(2026, 2, 1, 12, 15), datetime(2026, 7, 13, 0, 15)])
def test_a_single_time_is_read_or_unknown(locale: str, form: str, moment: datetime) -> None:
    """It never means another day or hour.

    Those that write 26/2/1 for the first of February are left out: by itself it is the 26th.
    """
    text = format_datetime(moment, form, locale=locale, tzinfo=UTC)
    found = LocalTimes([text]).read(text)
    assert found is None or found.replace(tzinfo=None) == moment


@each_row(
    ("texts", "first"),
    [
        (["03.07.2026, 09:15:00 MESZ"], "2026-07-03T09:15:00+02:00"),
        (["Mar 2, 2025, 9:00:00\u202fPM UTC"], "2025-03-02T21:00:00+00:00"),
        (["2026年7月3日 9:15:00 JST"], "2026-07-03T09:15:00+09:00"),
        (["Jul 3, 2026, 9:15:00 PM GMT-3:30"], "2026-07-03T21:15:00-03:30"),
        (["3 Jul 2026, 9:15:00 pm IST"], "2026-07-03T21:15:00+05:30"),
        (["15/1/2569 21:15"], "2026-01-15T21:15:00"),
        (["03/04/2026 à 21:15"], "2026-04-03T21:15:00"),
        (["3/4/26, 9:15 μ.μ."], "2026-04-03T21:15:00"),
        (["2021/3/2 晚上9:15"], "2021-03-02T21:15:00"),
        (["1/2/26, 9:00 AM", "1/13/26, 9:00 AM"], "2026-01-02T09:00:00"),
        (["11/1/26, 09:00", "12/1/26, 09:00", "1/2/26, 09:00"], "2026-01-11T09:00:00"),
    ],
)
def test_what_a_text_tells(texts: list[str], first: str) -> None:
    found = LocalTimes(texts, zone=ZoneInfo("Asia/Kolkata")).read(texts[0])
    assert found
    assert found.isoformat() == first


@each_row("text", ["03/04/2026, 21:15", "3/4/2026, 9:15 PM", "3. lis 2026. 9:00"])
def test_what_can_be_read_in_two_ways_is_not_read(text: str) -> None:
    """March or April; October in Croatian, November in Polish."""
    times = LocalTimes([text])
    assert times.ambiguous
    assert times.read(text) is None


@pytest.mark.parametrize(("day_first", "month"), [(True, 4), (False, 3)])
def test_the_user_may_say_which_comes_first(day_first: bool, month: int) -> None:
    text = "03/04/2026, 21:15"
    found = LocalTimes([text], day_first=day_first).read(text)
    assert found
    assert found.month == month


@each_row(
    "text", ["", "soon", "10:30", "1/2/3/4/2026", "99/99/2026 10:00", "in 3 days", "Mar 2025"]
)
def test_what_is_no_time(text: str) -> None:
    assert LocalTimes([text]).read(text) is None


@pytest.mark.slow
def test_times_of_a_long_chat_are_read_fast_enough() -> None:
    """Ten thousand of them, with a few that are none among them."""
    texts = [f"{(YEAR[0] + timedelta(minutes=n)):%d.%m.%y, %H:%M}" for n in range(10_000)]
    times = LocalTimes([*texts, "soon"])
    assert times.read(texts[-1]) == YEAR[0] + timedelta(minutes=9_999)
