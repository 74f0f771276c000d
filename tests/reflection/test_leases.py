"""What reflection keeps in a store, and leases without compare-and-set."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from topicloom import Fact, FactChanges, ReflectionPolicy, ReflectionStore, Said, StoreStorage
from topicloom.reflection.due import ReflectionMark, ReflectionProgress
from topicloom.reflection.fact_spans import record_facts

POLICY = ReflectionPolicy()
NUTS = Fact("Allergic to nuts", ("m1",), "2026-03-01T09:00:00+00:00")
TEA = Fact("Likes tea", ("m3",), "2026-03-02T09:00:00+00:00")


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    if request.param == "memory":
        yield InMemoryStore()
        return
    with SqliteStore.from_conn_string(str(tmp_path / "store.sqlite")) as made:
        made.setup()
        yield made


@pytest.fixture
def kept(store: BaseStore) -> ReflectionStore:
    return ReflectionStore(store, pause=0.001)


def test_facts_stand_where_an_application_finds_them(
    store: BaseStore, kept: ReflectionStore
) -> None:
    kept.change_facts("ann", FactChanges((TEA, NUTS)))
    kept.change_facts("bob", FactChanges((TEA,)))
    items = store.search(("topicloom", "ann", "facts"))
    assert {i.key: i.value for i in items} == {f.key: f.value for f in (NUTS, TEA)}
    assert list(kept.facts("ann").values()) == [NUTS, TEA]
    kept.change_facts("ann", FactChanges((), (TEA.key,)))
    assert list(kept.facts("ann").values()) == [NUTS]
    assert list(kept.facts("bob").values()) == [TEA]


def test_tenants_are_apart_whatever_their_names_are(kept: ReflectionStore) -> None:
    names = ["a", "a.facts", "a/b", "A", "%reflected", "..", "长" * 200, "a\0b"]
    for name in names:
        kept.change_facts(name, FactChanges((Fact(name.replace("\0", ""), ("m1",), ""),)))
        kept.save_progress(
            name, ReflectionProgress(marks=(ReflectionMark(upto=len(name), ref="r"),))
        )
    for name in names:
        assert [f.text for f in kept.facts(name).values()] == [name.replace("\0", "")]
        assert kept.progress(name).marks[0].upto == len(name)


def test_a_storage_may_share_the_store(store: BaseStore, kept: ReflectionStore) -> None:
    storage = StoreStorage(store)
    storage.open("s").append("transcript", None, [{"text": "x"}])
    kept.change_facts("s", FactChanges((NUTS,)))
    kept.save_progress("s", ReflectionProgress(failures=2, failed_at=1.5))
    assert kept.acquire_lease("s", "me", 0, POLICY)
    assert StoreStorage(store).sessions() == ["s"]
    assert kept.progress("s") == ReflectionProgress(failures=2, failed_at=1.5)
    assert kept.progress("other") == ReflectionProgress()


def test_items_edited_by_hand_are_passed_over(store: BaseStore, kept: ReflectionStore) -> None:
    kept.change_facts("s", FactChanges((NUTS,)))
    store.put(("topicloom", "s", "facts"), "x", {"fact": 3})
    store.put(("topicloom", "%reflected"), "s", {"marks": "all"})
    assert list(kept.facts("s").values()) == [NUTS]
    assert kept.progress("s") == ReflectionProgress()
    assert kept.acquire_lease("s", "a", 0, POLICY)
    [mark] = store.search(("topicloom", "%reflecting"))
    store.put(mark.namespace, mark.key, {**mark.value, "pid": None})
    assert kept.leases("s", 1) == {}


def test_a_fact_is_known_by_what_a_store_can_hold(kept: ReflectionStore) -> None:
    odd = Fact("Likes\0 tea", ("m1",), NUTS.at, said=(Said(NUTS.at, "m1"),))
    kept.change_facts("s", record_facts([(odd, ())], {}, {}))
    assert [fact.key for fact in kept.facts("s").values()] == list(kept.facts("s"))
    assert record_facts([(odd, ())], kept.facts("s"), {}) == FactChanges(), "twice is once"


def test_a_lease_is_held_by_one_until_it_is_given_back(kept: ReflectionStore) -> None:
    assert kept.acquire_lease("s", "b", 0, POLICY)
    assert not kept.acquire_lease("s", "a", 1, POLICY)
    assert not kept.acquire_lease("s", "c", 1, POLICY)
    assert kept.acquire_lease("other", "a", 1, POLICY)
    kept.release_lease("s", "b")
    assert kept.acquire_lease("s", "a", 2, POLICY)
    assert (kept.leases("s", 2), kept.leases("other", 2)) == ({"a": 2.0}, {"a": 1.0})


@pytest.mark.parametrize("seconds", [60, 3_600])
def test_a_lease_lasts_as_long_as_its_owner_says(kept: ReflectionStore, seconds: float) -> None:
    own = ReflectionPolicy(lease_seconds=seconds)
    assert kept.acquire_lease("s", "a", 0, own)
    assert not kept.acquire_lease("s", "b", seconds - 1, POLICY)
    assert kept.acquire_lease("s", "b", seconds, POLICY)


def test_an_owner_may_have_any_name(kept: ReflectionStore) -> None:
    assert kept.acquire_lease("s", "pod/1", 0, POLICY)
    assert not kept.acquire_lease("s", "pod/2", 1, POLICY)
    assert kept.leases("s", 1) == {"pod/1": 0.0}


def test_a_lease_runs_out(kept: ReflectionStore) -> None:
    assert kept.acquire_lease("s", "a", 0, POLICY)
    assert not kept.acquire_lease("s", "b", POLICY.lease_seconds - 1, POLICY)
    assert kept.acquire_lease("s", "b", POLICY.lease_seconds, POLICY)
    assert kept.acquire_lease("s", "c", -POLICY.lease_seconds, POLICY), "the clock was set back"


DYING = """
import os, signal, sys
from langgraph.store.sqlite import SqliteStore
from topicloom.reflection.due import ReflectionPolicy
from topicloom.reflection.store import ReflectionStore

with SqliteStore.from_conn_string(sys.argv[1]) as store:
    assert ReflectionStore(store).acquire_lease("s", "a", 0, ReflectionPolicy())
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_a_lease_falls_with_its_process(tmp_path: Path) -> None:
    path = str(tmp_path / "leases.sqlite")
    died = subprocess.run([sys.executable, "-c", DYING, path], check=False)
    assert died.returncode == -signal.SIGKILL
    with SqliteStore.from_conn_string(path) as store:
        [mark] = store.search(("topicloom", "%reflecting"))
        kept = ReflectionStore(store, pause=0)
        assert kept.leases("s", 1) == {}
        assert kept.acquire_lease("s", "b", 1, POLICY)
        assert not kept.acquire_lease("s", "c", 1, POLICY), "a process that lives keeps its own"
        kept.release_lease("s", "b")
        store.put(mark.namespace, mark.key, {**mark.value, "host": "another"})
        assert not kept.acquire_lease("s", "b", 1, POLICY), "another machine's runs out"


@pytest.mark.slow
def test_of_many_who_ask_at_once_one_gets_it_at_most() -> None:
    """Each with a store object of its own, as other processes have."""
    store, before, begun = InMemoryStore(), sys.getswitchinterval(), Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        # All have begun: coverage cannot install itself in threads that begin so close together.
        list(pool.map(lambda _: begun.wait(), range(8)))
        sys.setswitchinterval(1e-5)
        try:
            for number in range(30):
                asked = [
                    pool.submit(
                        ReflectionStore(store, pause=0).acquire_lease, f"s{number}", o, 0, POLICY
                    )
                    for o in "abcdefgh"
                ]
                assert sum(a.result() for a in asked) <= 1
        finally:
            sys.setswitchinterval(before)


def test_one_who_asks_alone_gets_it() -> None:
    kept = ReflectionStore(InMemoryStore())
    assert all(kept.acquire_lease(f"s{n}", "a", 0, POLICY) for n in range(5))
