"""`benchmarks/persons.py`: all kinds of look-ups find what they should, and a leak is counted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from topicloom import Session

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "persons.py"
USERS, THREADS, TALKING = 12, 5, 6
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def persons() -> Iterator[Any]:
    """The script, imported."""
    spec = spec_from_file_location("persons_benchmark", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for it there
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        spec.loader.exec_module(module)
        yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def lookups(persons: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("persons")
    with persons.open_store(folder, "") as store:
        persons.fill(persons.ReflectionStore(store), USERS, THREADS)
        others = persons.talk(folder, store, TALKING, THREADS)
        sessions = persons.FileStorage(folder / "talks", fsync=False)
        yield persons.Lookups(store, others, sessions, USERS, THREADS, TALKING)


def test_everything_is_found_and_nothing_crosses(lookups: Any) -> None:
    tallies = lookups.run(1_000)
    assert {kind: tally.crossed for kind, tally in tallies.items()} == dict.fromkeys(tallies, 0)
    assert all(tally.seen > tally.lookups / 2 for tally in tallies.values()), tallies
    assert sum(tally.lookups for tally in tallies.values()) == 1_000


@pytest.mark.parametrize(
    ("kind", "wall"),
    [
        ("facts", "topicloom.reflection.store.sees"),
        ("cards", "topicloom.storage.thread_profiles.sees"),
    ],
)
def test_a_scope_without_a_wall_is_counted(
    lookups: Any, monkeypatch: pytest.MonkeyPatch, kind: str, wall: str
) -> None:
    monkeypatch.setattr(wall, lambda scope, other: True)
    tallies = lookups.run(300)
    assert tallies[kind].crossed > 0


@dataclass
class Leaking:
    """Reads other threads as if each were in one scope."""

    others: Any

    def find_messages(self, kept: Any, session: Session, *asked: Any) -> Any:
        return self.others.find_messages(kept, self._move(session), *asked)

    def read(self, kept: Any, store: Any, session: Session, quotes: Any) -> Any:
        return self.others.read(kept, store, self._move(session), quotes)

    def _move(self, session: Session) -> Session:
        return session.model_copy(update={"scope": "work"})


def test_a_leaking_quote_is_counted(lookups: Any) -> None:
    seen, crossed = replace(lookups, others=Leaking(lookups.others)).find_messages(0, 0)
    assert 0 < crossed <= seen


def test_the_script_prints_all_figures(
    persons: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = "--users 6 --threads 3 --talking 2 --lookups 200 --turns 2"
    monkeypatch.setattr(sys, "argv", ["persons.py", *given.split()])
    persons.main()
    printed = capsys.readouterr().out
    for kind in persons.KINDS:
        assert f"{kind} seen: 0 crossed or missing" in printed
    assert "a turn:" in printed
