"""Which sessions stay open."""

from __future__ import annotations

from topicloom.storage.caches import OpenSessions


class Thing:
    def __init__(self, name: str) -> None:
        self.name = name


def test_held_or_used_lately_is_the_same() -> None:
    made: list[str] = []

    def make(name: str) -> Thing:
        made.append(name)
        return Thing(name)

    sessions = OpenSessions(make, 2)
    held = sessions.get("a")
    for name in "bcd":
        sessions.get(name)
    assert sessions.get("a") is held
    assert made == list("abcd")
    sessions.get("b")
    assert made == list("abcdb")
