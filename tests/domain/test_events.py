"""Neighbours of an event: before and after, so many steps away."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from topicloom.domain.sources import find_related_events


def event(name: str, **links: Any) -> dict[str, Any]:
    return {"id": name, **links}


ROAD = [
    event("find"),
    event("open", after=["find"]),
    event("enter", after="open", before=["leave"]),
    event("leave"),
    event("rest", after=["find"]),
]

names = st.sampled_from("abcdef")
graphs = st.lists(
    st.builds(
        lambda name, after, before: event(name, after=after, before=before),
        names,
        st.lists(names, max_size=3),
        st.lists(names, max_size=3),
    ),
    max_size=8,
)


def test_both_directions_and_steps() -> None:
    assert find_related_events(ROAD, "enter", 2) == {
        "open": (1, "before"),
        "find": (2, "before"),
        "leave": (1, "after"),
    }


def test_a_walk_keeps_its_direction() -> None:
    assert "rest" not in find_related_events(ROAD, "open", 5)


def test_a_ring_is_walked_once() -> None:
    ring = [event("a", after=["b"]), event("b", after=["a"])]
    assert find_related_events(ring, "a", 9) == {"b": (1, "before")}


def test_links_to_nothing_lead_nowhere() -> None:
    assert (
        find_related_events([event("a", after=["ghost", 7, None, True, {"id": "b"}])], "a", 2) == {}
    )
    assert find_related_events(ROAD, "ghost", 2) == {}


@given(graphs, names, st.integers(0, 4))
def test_never_the_focus_and_never_further_than_asked(
    events: list[dict[str, Any]], focus: str, depth: int
) -> None:
    found = find_related_events(events, focus, depth)
    assert focus not in found
    assert set(found) <= {e["id"] for e in events}
    assert all(1 <= steps <= depth for steps, _ in found.values())
