"""What stays in memory, and which sessions stay open."""

from __future__ import annotations

from topicloom.storage.caches import OpenSessions, WeighedCache


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


def test_a_cache_keeps_its_bound() -> None:
    cache: WeighedCache[str, str] = WeighedCache(10, len)
    for key in "abc":
        cache.put(key, key * 4)
    assert [cache.get(key) for key in "abc"] == [None, "bbbb", "cccc"]
    cache.get("b")
    cache.put("d", "dddd")
    assert [cache.get(key) for key in "bcd"] == ["bbbb", None, "dddd"]
    cache.put("e", "e" * 11)
    assert [cache.get(key) for key in "bde"] == ["bbbb", "dddd", None]


def test_the_first_value_stays() -> None:
    cache: WeighedCache[str, str] = WeighedCache(10, len)
    cache.put("a", "old")
    cache.put("a", "other")
    assert cache.get("a") == "old"
