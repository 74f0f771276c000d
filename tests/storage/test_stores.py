"""What only stores can suffer: damaged items, neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from langgraph.store.memory import InMemoryStore
from tables import each_row

from topicloom import StorageError, StoreStorage

BODIES = [{"text": "a"}, {"text": "b"}]


@each_row(
    "value",
    [
        {"body": '{"text":"evil"}', "prev": None},
        {"body": '{"text":', "prev": None},
        {"body": {"text": "a"}, "prev": None},
        {"body": "[1]", "prev": None},
        {},
    ],
)
def test_a_damaged_item(value: dict[str, Any]) -> None:
    store = InMemoryStore()
    head = StoreStorage(store).open("s").append("topics/t", None, BODIES)
    log = StoreStorage(store).open("s")
    first, second = log.refs("topics/t", head)
    store.put(("topicloom", "s", "topics%2Ft"), first, value)
    fresh = StoreStorage(store).open("s")
    assert fresh.read("topics/t", [second]) == BODIES[1:]
    with pytest.raises(StorageError, match=rf"item {first} .*topics%2Ft.* backup"):
        fresh.read("topics/t", [first])


def test_what_is_below_or_beside_is_not_ours() -> None:
    store = InMemoryStore()
    head = StoreStorage(store).open("s").append("c", None, BODIES)
    store.put(("topicloom", "s", "c", "below"), "0" * 16, {"body": "{}", "prev": None})
    store.put(("topicloom", "%sessions", "below"), "k", {"name": '"x"'})
    storage = StoreStorage(store)
    assert len(storage.open("s").refs("c", head)) == 2
    assert storage.sessions() == ["s"]


def test_sessions_with_a_damaged_card() -> None:
    store = InMemoryStore()
    store.put(("topicloom", "%sessions"), "k", {"name": "{"})
    with pytest.raises(StorageError, match="item k"):
        StoreStorage(store).sessions()


@each_row(
    "value",
    [{}, {"dimension": 3}, {"dimension": 3, "rows": "*"}, {"dimension": 3, "rows": "AAAA"}],
)
def test_damaged_vectors_are_passed_over(value: dict[str, Any]) -> None:
    store = InMemoryStore()
    store.put(("topicloom", "s", "%vectors-a"), "k", value)
    vectors = StoreStorage(store).open("s").vectors("a")
    assert vectors.load()[0] == []
    vectors.append(["0" * 16], np.ones((1, 3), dtype=np.float32))
    assert StoreStorage(store).open("s").vectors("a").load()[0] == ["0" * 16]


def test_vectors_of_two_sizes() -> None:
    store = InMemoryStore()
    for at, size in (("a", 2), ("b", 3)):
        vectors = StoreStorage(store).open("s").vectors(at)
        vectors.append(["0" * 16], np.ones((1, size), dtype=np.float32))
    [item] = store.search(("topicloom", "s", "%vectors-b"))
    store.put(("topicloom", "s", "%vectors-a"), "stray", item.value)
    for size in (2, 3):
        assert StoreStorage(store).open("s").vectors("a").load(size)[1].shape == (1, size)
