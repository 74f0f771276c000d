"""Days are those of the place where the user is, wherever the server stands."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from langgraph.store.memory import InMemoryStore
from pydantic import ValidationError
from sessions import open_graph, prompt_of, thread
from tables import each_row

from topicloom import (
    ConfigurationError,
    InputError,
    Memory,
    PersonMemory,
    Settings,
    TurnOptions,
)
from topicloom.hosting import find_zone
from topicloom.state.zones import place_in_zone
from topicloom.testing import Clock, ScriptedResponder, fake_roles

PLACES = ["Europe/Paris", "Asia/Kolkata", "America/Los_Angeles", "Pacific/Auckland", "Asia/Bangkok"]


@given(
    st.datetimes(datetime(1980, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC)),
    st.sampled_from(PLACES),
)
def test_a_moment_stays_the_same_and_its_day_is_the_users(moment: datetime, place: str) -> None:
    told = place_in_zone(moment, place)
    assert told == moment
    assert told.isoformat()[:10] == moment.astimezone(find_zone(place)).date().isoformat()
    assert datetime.fromisoformat(told.isoformat()) == moment


@each_row(
    ("name", "near"),
    [
        ("Paris", "Europe/Paris"),
        ("europe/pariss", "Europe/Paris"),
        ("New York", "America/New_York"),
    ],
)
def test_an_unknown_zone_is_named_with_those_like_it(name: str, near: str) -> None:
    with pytest.raises(InputError, match=f"{name}.*{near}"):
        find_zone(name)
    with pytest.raises(ValidationError, match=near):
        TurnOptions(timezone=name)
    with pytest.raises(ConfigurationError, match=near):
        Settings(timezone=name)


def test_a_run_says_the_zone_and_the_session_keeps_it(tmp_path: Path) -> None:
    responder = ScriptedResponder(otherwise="Noted.")
    clock = Clock()
    clock.now = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    graph = open_graph(tmp_path, fake_roles(responder), clock=clock)
    ways: list[tuple[dict[str, Any], Any]] = [
        ({}, TurnOptions(timezone="America/Los_Angeles")),
        ({"timezone": "America/Los_Angeles"}, None),
    ]
    for name, (configured, context) in enumerate(ways):
        config = thread(str(name))
        config["configurable"] |= configured
        graph.invoke({"messages": [("user", "Good evening.")]}, config, context=context)
        assert "2026-03-28" in prompt_of(responder.requests[-1])
        graph.invoke({"messages": [("user", "And good night.")]}, thread(str(name)))
        days = [m.day for m in Memory.of(graph, thread(str(name))).history()]
        assert days == ["2026-03-28"] * 4
    graph.invoke({"messages": [("user", "Good morning.")]}, thread("utc"))
    assert Memory.of(graph, thread("utc")).history()[0].day == "2026-03-29"


def test_the_setting_is_for_who_says_nothing(tmp_path: Path) -> None:
    clock = Clock()
    clock.now = datetime(2026, 1, 15, 20, 0, tzinfo=UTC)
    graph = open_graph(tmp_path, clock=clock, timezone="Asia/Kolkata")
    graph.invoke({"messages": [("user", "Hello.")]}, thread("s"))
    assert Memory.of(graph, thread("s")).history()[0].time.startswith("2026-01-16T01:30:01+05:30")


@pytest.mark.slow
def test_a_user_has_a_zone_in_all_threads_that_never_said_one(tmp_path: Path) -> None:
    """A run goes before the thread, that before the user, and this before the setting.

    In Paris clocks go back on 25 October 2026, in New York a week later.
    """
    clock, store = Clock(), InMemoryStore()
    clock.now = datetime(2026, 10, 24, 22, 30, tzinfo=UTC)
    graph = open_graph(tmp_path, clock=clock, timezone="Asia/Kolkata", store=store)
    person = PersonMemory(graph, "ann")

    def say(name: str, timezone: str = "") -> str:
        config, context = thread(name), TurnOptions(timezone=timezone)
        config["configurable"]["user_id"] = name.rstrip("12")
        graph.invoke({"messages": [("user", "Hello.")]}, config, context=context)
        return Memory.of(graph, config).history()[-2].time[:16]

    assert say("ann1") == "2026-10-25T04:00"  # as the setting says
    Memory.of(graph, thread("ann1")).person().set_timezone("Europe/Paris")
    assert [say("ann1"), say("ann2"), say("bob")] == [
        "2026-10-25T00:30",
        "2026-10-25T00:30",
        "2026-10-25T04:00",
    ]
    clock.now += timedelta(days=1)
    assert say("ann1") == "2026-10-25T23:30"  # winter has begun
    assert say("ann2", "America/New_York") == "2026-10-25T18:30"
    person.set_timezone("Asia/Bangkok")
    assert [say("ann1"), say("ann2")] == ["2026-10-26T05:30", "2026-10-25T18:30"]
    assert person.export()[0] == {"kind": "user", "user": "ann", "timezone": "Asia/Bangkok"}
    person.delete()
    assert (person.timezone(), store.search(("topicloom", "%zones"))) == ("", [])
    with pytest.raises(InputError, match="Europe/Paris"):
        person.set_timezone("Paris")


def test_days_hold_across_summer_time(tmp_path: Path) -> None:
    """In Paris clocks go forward on 29 March 2026: both evenings are at 23:30."""
    clock = Clock()
    clock.now = datetime(2026, 3, 28, 22, 30, tzinfo=UTC)
    graph = open_graph(tmp_path, clock=clock, timezone="Europe/Paris")
    graph.invoke({"messages": [("user", "The boiler man came.")]}, thread("s"))
    clock.now += timedelta(hours=23)
    graph.invoke({"messages": [("user", "The roofer came.")]}, thread("s"))
    said = [m for m in Memory.of(graph, thread("s")).history() if m.role == "user"]
    assert [m.time[:16] for m in said] == ["2026-03-28T23:30", "2026-03-29T23:30"]
    found = Memory.of(graph, thread("s")).search("came", since="2026-03-29", until="2026-03-29")
    assert [hit.message.text for hit in found if hit.message.role == "user"] == ["The roofer came."]
