"""Purging, on each kind of storage: bodies go, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from topicloom import InputError, MissingRecordError, Storage
from topicloom.storage.chain import link

Reopen = Callable[[], Storage]
CHAIN = "ranges"


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"text": text} for text in texts]


def texts_at(storage: Storage, head: str | None) -> list[str | None]:
    log = storage.open("s")
    return [body.get("text") for body in log.read(CHAIN, log.refs(CHAIN, head))]


def test_the_chain_stays_whole(reopen: Reopen) -> None:
    storage, watcher = reopen(), reopen()
    log = storage.open("s")
    trunk = log.append(CHAIN, None, said("a", "b"))
    left = log.append(CHAIN, trunk, said("left"))
    right = log.append(CHAIN, trunk, said("right"))
    refs = list(log.refs(CHAIN, right))
    log.read(CHAIN, refs)
    watcher.open("s").refs(CHAIN, right)
    assert log.purge(CHAIN, [refs[1], refs[2], refs[1]]) == 2
    assert log.purge(CHAIN, refs[1:]) == 0
    # What another process has in memory stays there; the refs are the same in any case.
    assert watcher.open("s").refs(CHAIN, right) == refs
    for place in (storage, reopen()):
        assert place.open("s").refs(CHAIN, right) == refs
        assert texts_at(place, left) == ["a", None, "left"]
        assert texts_at(place, right) == ["a", None, None]
        assert place.open("s").reports() == []
    [body] = log.read(CHAIN, [refs[1]])
    assert list(body) == ["purged"]


def test_what_is_to_stay_stays(reopen: Reopen) -> None:
    log = reopen().open("s")
    head = log.append(CHAIN, None, [{"seq": 1, "text": "secret", "time": "8:00"}, {"seq": 2}])
    refs = log.refs(CHAIN, head)
    log.purge(CHAIN, refs[:1], {refs[0]: {"seq": 1, "time": "8:00"}})
    first, second = reopen().open("s").read(CHAIN, refs)
    assert first.pop("purged")
    assert (first, second) == ({"seq": 1, "time": "8:00"}, {"seq": 2})


def test_it_does_not_come_back(reopen: Reopen) -> None:
    log = reopen().open("s")
    head = log.append(CHAIN, None, said("a", "b"))
    log.purge(CHAIN, [log.refs(CHAIN, head)[0]])
    assert reopen().open("s").append(CHAIN, None, said("a", "b")) == head
    assert texts_at(reopen(), head) == [None, "b"]


def test_it_does_not_come_back_through_who_knew_it_before(reopen: Reopen) -> None:
    """A step that another process runs again finds the entry, though it was purged meanwhile."""
    log, other = reopen().open("s"), reopen().open("s")
    head = log.append(CHAIN, None, said("a", "b"))
    first, _ = other.refs(CHAIN, head)
    log.purge(CHAIN, [str(head)])
    assert other.append(CHAIN, first, said("b")) == head
    assert texts_at(reopen(), head) == ["a", None]


def test_the_chain_goes_on(reopen: Reopen) -> None:
    log = reopen().open("s")
    head = log.append(CHAIN, None, said("a"))
    log.purge(CHAIN, log.refs(CHAIN, head))
    later = reopen().open("s").append(CHAIN, head, said("b"))
    assert texts_at(reopen(), later) == [None, "b"]


def test_vectors_go_too(reopen: Reopen) -> None:
    log = reopen().open("s")
    refs = list(log.refs(CHAIN, log.append(CHAIN, None, said("a", "b", "c"))))
    keys = [link(None, body) for body in said("a", "b", "c")]
    vectors = np.arange(9, dtype=np.float32).reshape(3, 3)
    for space in ("one", "two/2"):
        log.vectors(space).append(keys[:2], vectors[:2])
        log.vectors(space).append(keys[2:], vectors[2:])
    log.vectors("three").append(keys[:1], vectors[:1])
    log.purge(CHAIN, refs[:1])
    for space in ("one", "two/2"):
        found, left = reopen().open("s").vectors(space).load()
        assert sorted(found) == sorted(keys[1:])
        np.testing.assert_array_equal(left[[found.index(key) for key in keys[1:]]], vectors[1:])
    assert log.vectors("three").load()[0] == []
    log.vectors("three").append(keys[1:2], vectors[1:2])
    assert log.vectors("three").load()[0] == keys[1:2]


def test_unknown_refs(reopen: Reopen) -> None:
    storage = reopen()
    log = storage.open("s")
    assert log.purge(CHAIN, []) == 0
    with pytest.raises(MissingRecordError, match="0123456789abcdef"):
        log.purge(CHAIN, ["0123456789abcdef"])
    assert storage.sessions() == []
    head = log.append(CHAIN, None, said("a"))
    assert head is not None
    with pytest.raises(MissingRecordError):
        log.purge(CHAIN, [head, "0123456789abcdef"])
    assert texts_at(reopen(), head) == ["a"]


@pytest.mark.parametrize("keep", [{"prev": 1}, {"purged": 1}, {"x": {1}}])
def test_what_cannot_stay(reopen: Reopen, keep: dict[str, Any]) -> None:
    log = reopen().open("s")
    head = log.append(CHAIN, None, said("a"))
    assert head is not None
    with pytest.raises(InputError):
        log.purge(CHAIN, [head], {head: keep})
    assert texts_at(reopen(), head) == ["a"]


def test_removing_vectors(reopen: Reopen) -> None:
    keys = [f"{n:016x}" for n in range(2**58, 2**58 + 5)]  # of messages, not of briefs
    vectors = np.arange(15, dtype=np.float32).reshape(5, 3)
    log = reopen().open("s").vectors("a")
    log.remove(keys)
    log.append(keys[:3], vectors[:3])
    log.append(keys[2:], vectors[:3])
    log.remove([keys[0], "f" * 16])
    found, left = reopen().open("s").vectors("a").load()
    assert sorted(found) == keys[1:]
    np.testing.assert_array_equal(
        left[[found.index(key) for key in keys[1:]]], vectors[[1, 0, 1, 2]]
    )
    log.remove(keys)
    assert log.load()[0] == []
