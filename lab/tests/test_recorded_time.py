"""The clock of a recording, and its midnights."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given, strategies as st

from topicloom_app import RecordedMessage
from topicloom_lab.recorded_time import RecordedClock, midnights, time_of

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
moments = st.datetimes(datetime(2020, 1, 1), datetime(2021, 1, 1), timezones=st.just(UTC))


def said(time: str | None) -> RecordedMessage:
    return RecordedMessage(id="1", role="user", text="Hello", time=time)


def test_it_begins_with_the_first_time_that_is_named() -> None:
    messages = [said(None), said("January-05-2024"), said("2024-02-01")]
    assert RecordedClock.of(messages, lambda: NOW)() == datetime(2024, 1, 5, tzinfo=UTC)
    assert RecordedClock.of([said(None)], lambda: NOW)() == NOW


def test_messages_without_a_time_leave_it_as_it_is_and_none_sets_it_back() -> None:
    clock = RecordedClock(NOW)
    assert clock.after([said(None), said("next time"), said("2019-01-01")]) == NOW
    assert clock.after([said("2026-03-05T10:00:00+08:00")]).isoformat() == (
        "2026-03-05T10:00:00+08:00"
    )
    assert clock() == NOW


def test_a_time_without_zone_is_utc() -> None:
    assert time_of(said("2026-03-05 10:00")) == datetime(2026, 3, 5, 10, tzinfo=UTC)
    assert time_of(said("nobody knows")) is None


@given(moments, moments)
def test_every_day_begins_once(since: datetime, until: datetime) -> None:
    found = list(midnights(since, until))
    assert len(found) == max(0, (until.date() - since.date()).days)
    assert all(since < midnight <= until for midnight in found)
    assert found == sorted(set(found))


def test_days_begin_in_the_zone_of_the_clock() -> None:
    east = timezone(timedelta(hours=8))
    since = datetime(2026, 3, 2, 23, tzinfo=east)
    (midnight,) = midnights(since, datetime(2026, 3, 2, 17, tzinfo=UTC))
    assert midnight == datetime(2026, 3, 3, tzinfo=east)
