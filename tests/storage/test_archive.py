"""Archiving and restoring, on each kind of storage: nothing but the place changes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from topicloom.errors import InputError
from topicloom.storage import Storage

Reopen = Callable[[], Storage]
CHAIN = "topics/topic-t1"


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"text": text} for text in texts]


def texts_at(storage: Storage, head: str | None) -> list[str]:
    log = storage.open("s")
    return [body["text"] for body in log.read(CHAIN, log.refs(CHAIN, head))]


def test_every_head_reads_as_before(reopen: Reopen) -> None:
    storage, watcher = reopen(), reopen()
    log = storage.open("s")
    trunk = log.append(CHAIN, None, said("a", "b", "\ud800\n"))
    left = log.append(CHAIN, trunk, said("left"))
    right = log.append(CHAIN, trunk, said("right"))
    assert texts_at(watcher, left)[-1] == "left"
    log.archive(CHAIN, "2026-03")
    for place in (storage, watcher, reopen()):
        assert texts_at(place, trunk) == ["a", "b", "\ud800\n"]
        assert texts_at(place, left)[3:] == ["left"]
        assert texts_at(place, right)[3:] == ["right"]
        assert place.open("s").reports() == []


def test_an_archived_chain_goes_on(reopen: Reopen) -> None:
    storage, watcher = reopen(), reopen()
    log = storage.open("s")
    first = log.append(CHAIN, None, said("a"))
    head = log.append(CHAIN, first, said("b"))
    watcher.open("s").refs(CHAIN, head)
    log.archive(CHAIN, "2026-03")
    for place in (storage, watcher, reopen()):
        assert place.open("s").append(CHAIN, None, said("a", "b")) == head
    fork = watcher.open("s").append(CHAIN, first, said("c"))
    later = reopen().open("s").append(CHAIN, head, said("d"))
    for place in (storage, watcher, reopen()):
        assert texts_at(place, fork) == ["a", "c"]
        assert texts_at(place, later) == ["a", "b", "d"]


def test_archived_again_with_what_came_since(reopen: Reopen) -> None:
    log = reopen().open("s")
    head = log.append(CHAIN, None, said("a", "b"))
    for month in ("2026-03", "2026-03", "2026-05"):
        log.archive(CHAIN, month)
        assert not log.archive(CHAIN, month)
        head = log.append(CHAIN, head, said(month))
    for place in (log, reopen().open("s")):
        assert place.entries(CHAIN).keys() == set(place.refs(CHAIN, head))
        assert len(place.entries(CHAIN)) == 5
    assert texts_at(reopen(), head) == ["a", "b", "2026-03", "2026-03", "2026-05"]


def test_a_restored_chain_goes_on_as_if_never_archived(reopen: Reopen) -> None:
    storage, watcher = reopen(), reopen()
    log = storage.open("s")
    log.restore(CHAIN)
    head = log.append(CHAIN, None, said("a", "b"))
    log.archive(CHAIN, "2026-03")
    assert texts_at(watcher, head) == ["a", "b"]
    head = log.append(CHAIN, head, said("c"))
    for _ in range(2):
        log.restore(CHAIN)
        for place in (storage, watcher, reopen()):
            assert texts_at(place, head) == ["a", "b", "c"]
            assert place.open("s").entries(CHAIN).keys() == set(log.refs(CHAIN, head))
            assert place.open("s").reports() == []


def test_nothing_to_archive(reopen: Reopen) -> None:
    storage = reopen()
    log = storage.open("s")
    assert not log.archive(CHAIN, "2026-03")
    assert log.entries(CHAIN) == {}
    assert not log.restore(CHAIN)
    assert storage.sessions() == []


@pytest.mark.parametrize("month", ["", "2026", "2026-13", "2026-3", "../2026-03", "2026-03\n"])
def test_what_is_no_month(reopen: Reopen, month: str) -> None:
    log = reopen().open("s")
    log.append(CHAIN, None, said("a"))
    with pytest.raises(InputError, match="is not a month"):
        log.archive(CHAIN, month)


def test_chains_and_sessions_stay_apart(reopen: Reopen) -> None:
    storage = reopen()
    chains = ["topics/topic-t1", "topics/topic-t10", "topics", "topic-t1", "archived"]
    heads = {
        (name, chain): storage.open(name).append(chain, None, said(f"{name} {chain}"))
        for name in ("s", "s2")
        for chain in chains
    }
    for chain in chains:
        storage.open("s").archive(chain, "2026-03")
    for place in (storage, reopen()):
        for (name, chain), head in heads.items():
            log = place.open(name)
            assert log.read(chain, log.refs(chain, head)) == said(f"{name} {chain}")


def test_many_and_big_entries(reopen: Reopen) -> None:
    bodies = [{"n": n, "text": "x" * (3_000_000 if n == 700 else 300)} for n in range(1234)]
    log = reopen().open("s")
    head = log.append(CHAIN, None, bodies)
    log.archive(CHAIN, "2026-03")
    again = reopen().open("s")
    refs = again.refs(CHAIN, head)
    assert again.read(CHAIN, refs[1230:]) == bodies[1230:]
    assert again.read(CHAIN, refs) == bodies
    again.restore(CHAIN)
    assert reopen().open("s").read(CHAIN, refs) == bodies


def test_readers_beside_a_mover(reopen: Reopen) -> None:
    storage, watcher = reopen(), reopen()
    log = storage.open("s")
    head = log.append(CHAIN, None, said("a", "b", "c"))
    found: list[list[str]] = []
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(15):
                found.append(texts_at(watcher, head))
                found.append(texts_at(reopen(), head))
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    reader = Thread(target=read)
    reader.start()
    for _ in range(10):
        log.archive(CHAIN, "2026-03")
        log.restore(CHAIN)
    reader.join()
    assert failures == []
    assert found == [["a", "b", "c"]] * 30
