"""Times of exports in any unit and form."""

from __future__ import annotations

from tables import each_row

from topicloom_app.recordings.times import read_time


@each_row("unit", [1, 1e3, 1e6, 1e9])
@each_row("as_text", [False, True])
def test_numbers_in_any_unit(unit: float, as_text: bool) -> None:
    number = int(1_700_000_000 * unit)
    assert read_time(str(number) if as_text else number) == "2023-11-14T22:13:20+00:00"


@each_row(
    ("given", "read"),
    [
        ("2025-03-02T09:00:00Z", "2025-03-02T09:00:00+00:00"),
        ("2025-03-02T09:00:00+08:00", "2025-03-02T09:00:00+08:00"),
        ("Mar 2, 2025, 9:00:00\u202fPM UTC", "2025-03-02T21:00:00+00:00"),
        ("1700000000.5", "2023-11-14T22:13:20+00:00"),
        (-86_400, "1969-12-31T00:00:00+00:00"),
    ],
)
def test_times_are_read_from_each_form(given: object, read: str) -> None:
    assert read_time(given) == read


@each_row("given", [None, "", "soon", True, [], {}, 1e300, 10**400, float("nan"), "9" * 30])
def test_what_is_no_time(given: object) -> None:
    assert read_time(given) == ""
