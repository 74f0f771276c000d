"""`lab/benchmarks/ranking.py`: a turn is asked in its place, and vectors are made once."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from talks import talk_file

from topicloom.lab import HashingEmbedder, Vectors
from topicloom_app import Conversation, RecordedMessage
from topicloom_app.recordings.conversations import Question
from topicloom_lab.kept_vectors import KeptEmbedder
from topicloom_lab.ranked_questions import FRAME

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "ranking.py"
SAID = (
    "The boiler code is 4711.",
    "Noted: 4711.",
    "We fly to Oslo in May.",
    "Oslo in May, good.",
    "What was the boiler code?",
    "It is 4711.",
    "And the boiler man is called Finn.",
    "Finn, noted.",
)


@pytest.fixture(scope="module")
def ranking() -> Iterator[Any]:
    spec = spec_from_file_location("ranking_benchmark", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@dataclass
class Counting:
    """An encoder that counts the texts it is asked for."""

    inner: HashingEmbedder = field(default_factory=HashingEmbedder)
    texts: int = 0

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += len(texts)
        return self.inner.embed(texts)


def a_file(path: Path) -> str:
    messages = tuple(
        RecordedMessage(id=f"m{n}", role="assistant" if n % 2 else "user", text=text)
        for n, text in enumerate(SAID)
    )
    turn = Question(id="turn", question=SAID[4], evidence=("m0", "m3"), asked_at="m4")
    last = Question(id="last", question="Who is the boiler man?", evidence=("m6",))
    talk_file(path, Conversation(id="c", messages=messages, questions=(turn, last)))
    return str(path)


def test_a_turn_is_asked_in_its_place(ranking: Any, tmp_path: Path) -> None:
    kept = KeptEmbedder(HashingEmbedder(), tmp_path)
    source = a_file(tmp_path / "talk.jsonl")
    cases = iter(ranking.read("kind", source, 9, kept))
    turn = next(cases)
    assert [m.id for m in turn.spoken] == ["m0", "m1", "m2", "m3"]
    assert len(turn.asked.cosine) == len(turn.asked.lexical) == 4
    assert (turn.evidence, turn.gold, turn.in_view) == ({0, 3}, 2, 0)
    assert turn.recall(turn.best(ranking.RECALL, 10**6), 10**6) == 1
    last = next(cases)
    assert (len(last.spoken), last.in_view) == (8, 0)


def test_what_is_in_view_is_found_and_not_quoted(ranking: Any, tmp_path: Path) -> None:
    kept = KeptEmbedder(HashingEmbedder(), tmp_path)
    source = a_file(tmp_path / "talk.jsonl")
    turn = next(iter(ranking.read("kind", source, 9, kept, 2)))
    best = turn.best(ranking.RECALL, 10**6)
    assert sorted(best.tolist()) == [0, 1, 2, 3]  # ranked like all others
    assert turn.in_view == 2
    assert turn.recall(best, 0) == 0.5
    assert turn.recall(best, 10**6) == 1
    shown, tokens, *_ = turn.shown(best, 10**6, in_part=True)
    assert (shown, tokens) == (1, 1)
    assert turn.others["last"] == [1, 1, 1]
    room = int(turn.asked.messages.costs[:2].sum()) + 2 * FRAME
    assert turn.recall(best, room) == 1  # those in view cost nothing


def test_vectors_are_made_once(tmp_path: Path) -> None:
    encoder = Counting()
    KeptEmbedder(encoder, tmp_path).prepare(["one", "two", "one"])
    again = KeptEmbedder(encoder, tmp_path)
    again.prepare(["two", "three", "one"])
    assert encoder.texts == 3
    expected = HashingEmbedder().embed(["one", "two", "three"])
    assert again.embed(["one", "two", "three"]).tolist() == expected.tolist()


def test_the_report_leaves_whole_kinds_out(ranking: Any, tmp_path: Path) -> None:
    kept = KeptEmbedder(HashingEmbedder(), tmp_path)
    source = a_file(tmp_path / "talk.jsonl")
    found = {
        kind: [ranking.measure(case) for case in ranking.read(kind, source, 9, kept)]
        for kind in ("projects", "phone")
    }
    told = ranking.report(found)
    assert "| as shipped |" in told
    assert "| without charge_price |" in told
    assert "projects left out: {" in told
    assert "left out over the best other at 4,000" in told
    alone = ranking.report({"projects": found["projects"]})
    assert "as shipped" in alone
    assert "left out" not in alone
