"""Random histories against a model: a chain is a list, a storage a dict from heads to lists."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from examples import scaled
from hypothesis import settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule
from langgraph.store.memory import InMemoryStore

from topicloom import FileStorage, Storage, StoreStorage

pytestmark = pytest.mark.slow

chains = st.sampled_from(["transcript", "ranges"])
bodies = st.lists(
    st.fixed_dictionaries(
        {"text": st.sampled_from(["a", "b", "\ud800", "\n"])},
        optional={"time": st.text(max_size=3)},
    ),
    max_size=4,
)


openings = st.integers(0, 1)


class Branching(RuleBasedStateMachine):
    """Appends after any head seen so far and purges, through two openings.

    What is purged is gone for everyone who opens the place afterwards; an
    opening that has read it before may remember it.
    """

    heads = Bundle("heads")

    def place(self) -> Storage:
        raise NotImplementedError

    @initialize(target=heads)
    def begin(self) -> tuple[str, str | None]:
        self.storages = [self.place(), self.place()]
        self.model: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
        self.purged: set[tuple[str, str]] = set()
        self.remembered: list[set[tuple[str, str]]] = [set(), set()]
        return ("transcript", None)

    @rule(target=heads, at=heads, new=bodies, which=openings)
    def append(
        self, at: tuple[str, str | None], new: list[dict[str, Any]], which: int
    ) -> tuple[str, str | None]:
        chain, head = at
        newest = self.storages[which].open("s").append(chain, head, new)
        self.model.setdefault((chain, newest), [*self.model.get(at, []), *new])
        return chain, newest

    @rule(target=heads, chain=chains)
    def another(self, chain: str) -> tuple[str, str | None]:
        return chain, None

    @rule(at=heads, which=openings, chosen=st.sets(st.integers(0, 5), max_size=3))
    def purge(self, at: tuple[str, str | None], which: int, chosen: set[int]) -> None:
        chain, head = at
        log = self.storages[which].open("s")
        refs = [ref for place, ref in enumerate(log.refs(chain, head)) if place in chosen]
        gone = {(chain, ref) for ref in refs}
        assert log.purge(chain, refs) == len(gone - self.purged)
        self.purged |= gone
        self.remembered[which] -= gone
        self.remembered[1 - which] |= gone

    @rule(at=heads, which=openings)
    def look(self, at: tuple[str, str | None], which: int) -> None:
        chain, head = at
        log = self.storages[which].open("s")
        refs = log.refs(chain, head)
        said = [body["text"] for body in self.model.get(at, [])]
        found = [body.get("text") for body in log.read(chain, refs)]
        for ref, text, expected in zip(refs, found, said, strict=True):
            purged = (chain, ref) in self.purged
            remembered = (chain, ref) in self.remembered[which]
            assert text == (None if purged and not (remembered and text) else expected)
        assert log.reports() == []

    @rule(which=openings)
    def restart(self, which: int) -> None:
        self.storages[which] = self.place()
        self.remembered[which] = set()


class BranchingFiles(Branching):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()

    def place(self) -> Storage:
        return FileStorage(Path(self.folder.name), fsync=False)

    def teardown(self) -> None:
        self.folder.cleanup()


class BranchingStore(Branching):
    def __init__(self) -> None:
        super().__init__()
        self.store = InMemoryStore()

    def place(self) -> Storage:
        return StoreStorage(self.store)


few = settings(max_examples=scaled(60), stateful_step_count=30, deadline=None)
TestBranchingFiles = BranchingFiles.TestCase
TestBranchingFiles.settings = few
TestBranchingStore = BranchingStore.TestCase
TestBranchingStore.settings = few
