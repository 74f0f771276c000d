"""Random branching against a model: a chain is a list, a storage a dict from heads to lists."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule
from langgraph.store.memory import InMemoryStore

from topicloom.storage import FileStorage, Storage, StoreStorage

chains = st.sampled_from(["transcript", "topics/topic-t1"])
bodies = st.lists(
    st.fixed_dictionaries(
        {"text": st.sampled_from(["a", "b", "\ud800", "\n"])},
        optional={"time": st.text(max_size=3)},
    ),
    max_size=4,
)


class Branching(RuleBasedStateMachine):
    """Appends after any head seen so far, through two openings of one place."""

    heads = Bundle("heads")

    def place(self) -> Storage:
        raise NotImplementedError

    @initialize(target=heads)
    def begin(self) -> tuple[str, str | None]:
        self.storages = [self.place(), self.place()]
        self.model: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
        return ("transcript", None)

    @rule(target=heads, at=heads, new=bodies, which=st.integers(0, 1))
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

    @rule(at=heads, which=st.integers(0, 1))
    def look(self, at: tuple[str, str | None], which: int) -> None:
        chain, head = at
        log = self.storages[which].open("s")
        refs = log.refs(chain, head)
        assert untimed(log.read(chain, refs)) == untimed(self.model.get(at, []))
        assert log.reports() == []

    @rule(which=st.integers(0, 1))
    def restart(self, which: int) -> None:
        self.storages[which] = self.place()


def untimed(found: list[dict[str, Any]]) -> list[str]:
    return [body["text"] for body in found]


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


few = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestBranchingFiles = BranchingFiles.TestCase
TestBranchingFiles.settings = few
TestBranchingStore = BranchingStore.TestCase
TestBranchingStore.settings = few
