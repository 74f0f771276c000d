"""Archives in stores: kills at every step, damaged items, two machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from langgraph.store.base import BaseStore, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

from topicloom.errors import StorageError
from topicloom.storage import StoreStorage

CHAIN = "topics/t"
ITEMS = ("topicloom", "s", "topics%2Ft")
ARCHIVE = ("topicloom", "s", "%archived-topics%2Ft")
TEXTS = ["first words", "secret words", "last words"]


class Killed(BaseException):
    """The process ends here."""


class Mortal(InMemoryStore):
    """A store whose process is killed before one of its writes."""

    left: float = float("inf")

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        listed = list(ops)
        if any(isinstance(op, PutOp) for op in listed):
            if self.left <= 0:
                raise Killed
            self.left -= 1
        return super().batch(listed)


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"text": text} for text in texts]


def opened(store: BaseStore) -> Any:
    return StoreStorage(store).open("s")


def filled(store: BaseStore, *, archived: bool = False) -> str:
    head = opened(store).append(CHAIN, None, said(*TEXTS))
    if archived:
        opened(store).archive(CHAIN, "2026-03", {"brief": "secret words"})
    return str(head)


def texts_at(store: BaseStore, head: str) -> list[str | None]:
    log = opened(store)
    return [body.get("text") for body in log.read(CHAIN, log.refs(CHAIN, head))]


def keys_in(store: BaseStore, namespace: tuple[str, ...]) -> list[str]:
    return sorted(item.key for item in store.search(namespace, limit=100))


def block_of(store: BaseStore) -> str:
    [key] = set(keys_in(store, ARCHIVE)) - {"card"}
    return key


def test_the_layout() -> None:
    store = InMemoryStore()
    head = filled(store, archived=True)
    assert keys_in(store, ITEMS) == []
    assert len(keys_in(store, ARCHIVE)) == 2
    assert len(block_of(store)) == 32
    opened(store).append(CHAIN, head, said("more"))
    assert len(keys_in(store, ITEMS)) == 1
    opened(store).restore(CHAIN)
    assert keys_in(store, ARCHIVE) == []
    assert len(keys_in(store, ITEMS)) == 4


def archive(log: Any) -> None:
    log.archive(CHAIN, "2026-04", {"name": "words"})


def restore(log: Any) -> None:
    log.restore(CHAIN)


def purge(log: Any) -> None:
    secret = next(ref for ref, prev in log.entries(CHAIN).items() if prev is None)
    log.purge(CHAIN, [secret])


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("act", [archive, restore, purge])
def test_killed_between_any_two_writes(act: Callable[[Any], None], archived: bool) -> None:
    for writes in range(50):
        store = Mortal()
        head = filled(store, archived=archived)
        head = opened(store).append(CHAIN, head, said("plain"))
        store.left = writes
        try:
            act(opened(store))
        except Killed:
            pass
        else:
            break
        store.left = float("inf")
        everything = [*TEXTS, "plain"]
        after = [None, *everything[1:]] if act is purge else everything
        assert texts_at(store, head) in (everything, after)
        assert opened(store).append(CHAIN, None, said(*everything)) == head
        assert opened(store).reports() == []
        act(opened(store))
        assert texts_at(store, head) == after
        assert opened(store).reports() == []
        assert len(opened(store).entries(CHAIN)) == 4
    assert (writes > 0) == (archived or act is not restore)


def lose_a_block(store: BaseStore) -> None:
    store.delete(ARCHIVE, block_of(store))


def spoil_a_block(store: BaseStore) -> None:
    store.put(ARCHIVE, block_of(store), {"block": "AAAA"})


def empty_a_block(store: BaseStore) -> None:
    store.put(ARCHIVE, block_of(store), {})


@pytest.mark.parametrize("harm", [lose_a_block, spoil_a_block, empty_a_block])
def test_a_damaged_archive(harm: Callable[[BaseStore], None]) -> None:
    store = InMemoryStore()
    head = filled(store, archived=True)
    harm(store)
    log = opened(store)
    refs = log.refs(CHAIN, head)
    assert len(refs) == 3
    with pytest.raises(StorageError, match="Restore it from a backup"):
        log.read(CHAIN, refs)
    assert log.readable(CHAIN, refs) == {}
    assert len(log.reports()) == 1
    later = log.append(CHAIN, head, said("more"))
    for move in (archive, restore):
        with pytest.raises(StorageError, match="Restore it from a backup"):
            move(opened(store))
    assert opened(store).append(CHAIN, None, said(*TEXTS)) == head
    assert texts_at(store, later) == [*TEXTS, "more"]


def test_what_is_lost_can_be_purged_and_what_is_spoilt_cannot() -> None:
    store = InMemoryStore()
    head = filled(store, archived=True)
    spoil_a_block(store)
    with pytest.raises(StorageError, match="cannot be unpacked"):
        opened(store).purge(CHAIN, [head])
    lose_a_block(store)
    assert opened(store).purge(CHAIN, [head]) == 1
    log = opened(store)
    assert list(log.readable(CHAIN, log.refs(CHAIN, head))) == [head]
    assert len(log.entries(CHAIN)) == 3
    assert log.archived(CHAIN).summary == {}


def test_damaged_items_stay_where_people_can_mend_them() -> None:
    store = InMemoryStore()
    head = filled(store)
    first = opened(store).refs(CHAIN, head)[0]
    whole = store.get(ITEMS, first)
    assert whole is not None
    store.put(ITEMS, first, {"body": "{}", "prev": None})
    archive(opened(store))
    assert keys_in(store, ITEMS) == [first]
    with pytest.raises(StorageError, match=rf"item {first}"):
        texts_at(store, head)
    store.put(ITEMS, first, whole.value)
    assert texts_at(store, head) == TEXTS


def test_two_machines() -> None:
    """What one appends while another archives stays; what both archive is there once."""
    store = InMemoryStore()
    one, two = opened(store), opened(store)
    head = filled(store)
    assert two.refs(CHAIN, head)
    archive(one)
    later = two.append(CHAIN, head, said("more"))
    assert two.append(CHAIN, None, said(*TEXTS)) == head
    archive(two)
    archive(one)
    assert texts_at(store, later) == [*TEXTS, "more"]
    assert keys_in(store, ITEMS) == []
    assert len(keys_in(store, ARCHIVE)) == 2
    restore(two)
    assert one.read(CHAIN, one.refs(CHAIN, later)) == said(*TEXTS, "more")
