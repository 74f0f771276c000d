"""Measures what a curation finds, and how long a turn waits for it.

    python lab/benchmarks/curation.py data/tasks            # HotpotQA's paragraphs as lore
    python lab/benchmarks/curation.py --turns 200 --sleep 5 # a selector that is always late

The folder holds `hotpotqa_dev_corpus.jsonl` and `hotpotqa_dev_questions.jsonl`. Targets: both gold
paragraphs among the picked 5 for .62 of the questions; a turn's own wait of less than 1.6 s at the
95th percentile, with late results used by later turns. The selector was developed on the questions
of even number.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver

from topicloom import (
    RESPONDER,
    SELECTOR,
    Answer,
    Domain,
    FileStorage,
    LocalRole,
    Receipt,
    Selection,
    SelectRequest,
    Session,
    SessionStore,
    Settings,
    TurnPlan,
    build_session_graph,
    default_embedder,
    embedded_roles,
)
from topicloom.lab import (
    BatchFile,
    DocumentLoreIndex,
    EmbeddedSelector,
    HashingEmbedder,
    LoreSource,
    SearchIntent,
    VectorLog,
)
from topicloom_lab.talk import Echo, lore_of_themes, said

CANDIDATES, PICKS = 50, 5
PARTS = 30
"""Documents about each word of a theme: enough that no turn has seen them all."""


@dataclass(frozen=True)
class Outcome:
    """The result of one question."""

    found: bool
    """True if both gold paragraphs are among the candidates."""
    by_score: bool
    """True if they are among as many of the best candidates as may be picked."""
    picked: bool
    """True if they are among those that the selector picked."""
    seconds: float
    """Retrieval and selection."""


def gold(folder: Path, vectors: Path | None) -> None:
    """Print the shares of questions whose paragraphs are found and picked."""
    corpus = [json.loads(line) for line in (folder / "hotpotqa_dev_corpus.jsonl").open()]
    questions = [json.loads(line) for line in (folder / "hotpotqa_dev_questions.jsonl").open()]
    documents = [Document(c["text"], metadata={"title": c["title"]}) for c in corpus]
    kept = (lambda _: VectorLog(BatchFile(vectors), nullcontext)) if vectors else None
    index = DocumentLoreIndex(documents, default_embedder(), kept)
    began = time.perf_counter()
    index.prepare().result()
    print(f"{len(documents)} paragraphs on the index in {time.perf_counter() - began:.0f} s")
    outcomes = [outcome(index, question) for question in questions]
    halves = {"all": outcomes, "even, developed on": outcomes[::2], "odd": outcomes[1::2]}
    for name, half in halves.items():
        print(
            f"{name}, {len(half)} questions: both gold paragraphs among {CANDIDATES} candidates"
            f" {share(o.found for o in half)}, the best {PICKS} by score"
            f" {share(o.by_score for o in half)}, the picked {share(o.picked for o in half)}"
            + (" (target .62)" if name == "all" else "")
        )
    spent = sorted(o.seconds for o in outcomes)
    print(f"a question takes {spent[len(spent) // 2]:.3f} s, at most {spent[-1]:.3f} s")


def outcome(index: DocumentLoreIndex, question: dict[str, Any]) -> Outcome:
    """Search and pick for one question. Of a paragraph that was cut, all parts are needed."""
    began = time.perf_counter()
    search = SearchIntent()
    found = LoreSource(index).search(question["question"], search, CANDIDATES)
    request = SelectRequest(
        session="benchmark",
        query=question["question"],
        tail=(),
        plan=TurnPlan(search=search),
        candidates=found,
        limit=PICKS,
        language="en",
    )
    ids = EmbeddedSelector().call(request).value.ids
    seconds = time.perf_counter() - began
    wanted = {p.id for p in index.passages if p.title in question["gold_titles"]}
    return Outcome(
        found=wanted <= {c.id for c in found},
        by_score=wanted <= {c.id for c in found[:PICKS]},
        picked=wanted <= set(ids),
        seconds=seconds,
    )


def share(hits: Iterable[bool]) -> str:
    """A share as the documentation writes it."""
    return f"{statistics.mean(map(float, hits)):.2f}"


class Sleepy(LocalRole[SelectRequest, Selection]):
    """The embedded selector, late."""

    model = "sleepy"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def call(self, request: SelectRequest) -> Answer[Selection]:
        """Sleep, then pick."""
        time.sleep(self._seconds)
        return EmbeddedSelector().call(request)


def waits(turns: int, sleep: float) -> None:
    """Print what turns wait for a selector that sleeps, and what they get all the same."""
    echo = Echo()
    roles = (
        embedded_roles(HashingEmbedder(256))
        .replace(RESPONDER, echo)
        .replace(SELECTOR, Sleepy(sleep))
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = Settings(folder=folder, fsync=False, embedder="hashing")
        graph: Any = build_session_graph(
            settings=settings,
            roles=roles,
            clock=echo.now,
            domain=Domain(lore=lore_of_themes(PARTS)),
        ).compile(checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "benchmark"}}
        whole = []
        for echo.turn in range(turns):
            began = time.perf_counter()
            graph.invoke({"messages": [("user", said(echo.turn, 60))], "document": {}}, config)
            whole.append(time.perf_counter() - began)
        report(receipts(folder, graph.get_state(config).values["session"]), whole)


def receipts(folder: Path, session: dict[str, Any]) -> list[Receipt]:
    """Receipts of all turns."""
    store = SessionStore(FileStorage(folder, fsync=False).open("benchmark"))
    return store.receipts(Session.model_validate(session))


def report(turns: Sequence[Receipt], whole: Sequence[float]) -> None:
    """Print figures of a run."""
    own = [call for r in turns for call in r.calls if call.role == "curation"]
    late = sum(1 for call in own if call.failure)
    used = [call for call in own if call.remarks]
    print(f"{len(turns)} turns, {late} whose curation was late")
    print(f"a turn's own wait: p95 {p95([c.seconds for c in own]):.3f} s (target 1.600)")
    print(f"the whole turn: p95 {p95(whole):.3f} s")
    entries = sum(len(call.remarks) for call in used)
    print(f"{len(used)} turns used {entries} entries that an earlier turn had asked for")


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", help="folder with the HotpotQA files")
    parser.add_argument("--vectors", type=Path, help="file that keeps vectors between runs")
    parser.add_argument("--turns", type=int, default=0)
    parser.add_argument("--sleep", type=float, default=5.0)
    given = parser.parse_args()
    if given.data:
        gold(given.data, given.vectors)
    if given.turns:
        waits(given.turns, given.sleep)


if __name__ == "__main__":
    main()
