"""Which sessions stay open."""

from __future__ import annotations

from topicloom.storage.shelf import Shelf


class Thing:
    def __init__(self, name: str) -> None:
        self.name = name


def test_held_or_used_lately_is_the_same() -> None:
    made: list[str] = []

    def make(name: str) -> Thing:
        made.append(name)
        return Thing(name)

    shelf = Shelf(make, 2)
    held = shelf.get("a")
    for name in "bcd":
        shelf.get(name)
    assert shelf.get("a") is held
    assert made == list("abcd")
    shelf.get("b")
    assert made == list("abcdb")
