"""Measures the session graph on a folder of data sets, and writes one page of figures.

    python lab/benchmarks/baseline.py FOLDER --out RESULTS [--page baseline.md] [--only realmem ...]

FOLDER has `memory/*.jsonl` and `threads/*_dev.jsonl`, packed (`.xz`) or not. There are four parts:

- `memory`: recall, tokens shown and precision at 1,000, 2,000, 4,000 and 8,000 tokens, by the
  embedded roles, and the CPU time of turns and of splits. A conversation is replayed once, and
  asked at all budgets.
- `topics`: the same with gold topics and with one topic for all, where FOLDER has a file of threads
  of the same name.
- `readers`: recall, and tokens of readers a question, with simulated readers that decide, or
  advise, at 4,000 tokens; the first conversation of each file.
- `threads`: the session's topics against the known ones.

The unit of work is a conversation. Its result is a file in RESULTS, which is written whole; so a
run that was stopped goes on with the next conversation, and several processes can share a folder:
a conversation that another process is at is passed over. What is finished is never run again, and
results of two versions of the code do not stand in one folder. The page is of what is finished.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice, product
from pathlib import Path
from statistics import mean, quantiles
from typing import Any, Literal

from topicloom import Settings
from topicloom_app.recordings.conversations import Conversation, load_conversations
from topicloom_lab.comparison.measures import share_of_evidence
from topicloom_lab.comparison.results import show_share, table
from topicloom_lab.comparison.run import code_hash, machine
from topicloom_lab.known_topics import Labels
from topicloom_lab.memory import BY_DATE, MemoryEvaluation, MemoryRow
from topicloom_lab.opened import Row
from topicloom_lab.readers import ReaderChoice
from topicloom_lab.thread_scores import ThreadScores
from topicloom_lab.threads import evaluate_threads, load_labels, load_threads
from topicloom_lab.turn_costs import FedTurn

BUDGETS = (1_000, 2_000, 4_000, 8_000)
READ_BUDGET = 4_000
READERS = ("ideal", "noisy:0.2", "silent", "garbage")
WEIGHTS: tuple[Literal["decide", "advise"], ...] = ("decide", "advise")
PARTS = ("memory", "topics", "readers", "threads")
SCORES = ("ari", "one_to_one", "vi", "exact")


@dataclass(frozen=True)
class Unit:
    """A conversation to be measured in one way."""

    part: str
    """One of `PARTS`."""
    source: str
    """Name of the file, without its endings."""
    how: str
    """Topics, or readers; "" where there is one way only."""
    number: int
    """Number of the conversation in the file, from 1."""
    run: Callable[[], Row]
    """Measures it."""

    @property
    def name(self) -> str:
        """Path of its result in the folder of results, without an ending."""
        return "/".join(filter(None, (self.part, self.source, self.how, f"{self.number:03}")))


def find_units(folder: Path, parts: Sequence[str], first: int) -> Iterator[Unit]:
    """All that is to be measured, file by file, the first conversations of each."""
    for path in _find_files(folder / "memory", ""):
        known = next(iter(_find_files(folder / "threads", _name(path))), None)
        labels = load_labels(known) if known and "topics" in parts else {}
        for number, conversation in enumerate(islice(load_conversations(path), first), start=1):
            for part, how, evaluation in _find_ways(parts, labels, number):
                yield Unit(part, _name(path), how, number, _bind_memory(evaluation, conversation))
    if "threads" in parts:
        for path in _find_files(folder / "threads", "_dev"):
            for number, threaded in enumerate(islice(load_threads(path), first), start=1):

                def run(threaded: Any = threaded) -> Row:
                    (row,) = evaluate_threads([threaded])
                    scores = {"came": row.as_they_come, "moved": row.moved}
                    shown = {when: found and asdict(found) for when, found in scores.items()}
                    return {"id": row.id, "messages": len(threaded.messages)} | shown

                yield Unit("threads", _name(path), "", number, run)


def _find_ways(
    parts: Sequence[str], labels: Mapping[str, Labels], number: int
) -> Iterator[tuple[str, str, MemoryEvaluation]]:
    """The ways in which a conversation is asked: the part, what is different, and the run."""
    if "memory" in parts:
        yield "memory", "", MemoryEvaluation(BUDGETS)
    if labels:
        yield "topics", "gold", MemoryEvaluation(BUDGETS, topics="gold", labels=labels)
        yield "topics", "none", MemoryEvaluation(BUDGETS, topics="none")
    if "readers" in parts and number == 1:
        for kind, weight in product(READERS, WEIGHTS):
            evaluation = MemoryEvaluation(
                (READ_BUDGET,),
                readers=ReaderChoice.parse(kind),
                settings=Settings(readers=weight),
            )
            yield "readers", f"{kind.replace(':', '-')} {weight}", evaluation


def _bind_memory(evaluation: MemoryEvaluation, conversation: Conversation) -> Callable[[], Row]:
    return lambda: measure_memory(evaluation, conversation)


def measure_memory(evaluation: MemoryEvaluation, conversation: Conversation) -> Row:
    """Replay and ask one conversation; the rows of its questions, and the times of its turns."""
    with tempfile.TemporaryDirectory() as folder:
        events = list(evaluation.run(conversation, Path(folder)))
    rows = [e for e in events if isinstance(e, MemoryRow) and e.evidence]
    turns = [e for e in events if isinstance(e, FedTurn)]
    left_out = {"message_ids", "evidence", "calls", "failed", "conversation"}
    return {
        "id": conversation.id,
        "messages": sum(turn.messages for turn in turns),
        "turns": [round(turn.cpu_seconds, 4) for turn in turns],
        "splits": [round(t.split_seconds, 4) for t in turns if t.split_seconds is not None],
        "asked": [
            {key: value for key, value in row.as_json().items() if key not in left_out}
            for row in rows
            if row.category != BY_DATE
        ],
    }


def _find_files(folder: Path, part: str) -> list[Path]:
    """The files of conversations in a folder with a part in their names."""
    found = [*folder.glob("*.jsonl"), *folder.glob("*.jsonl.xz")]
    return sorted(path for path in found if part in _name(path))


def _name(path: Path) -> str:
    return path.name.partition(".")[0]


@contextmanager
def hold(path: Path) -> Iterator[bool]:
    """Hold a file that no other process holds; False if one does. It is free after a kill too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def run_unit(unit: Unit, out: Path, code: str) -> bool:
    """Measure a unit unless its result is there or another process is at it; True if it was."""
    result = out / f"{unit.name}.json"
    with hold(out / f"{unit.name}.lock") as free:
        if not free or result.exists():
            return False
        began, cpu = time.perf_counter(), time.process_time()
        row = unit.run()
        spent = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
        made = {"part": unit.part, "source": unit.source, "how": unit.how, "code": code}
        fresh = result.with_suffix(".part")
        fresh.write_text(json.dumps(made | spent | row, ensure_ascii=False), "utf-8")
        fresh.replace(result)
        return True


def read_results(out: Path) -> list[Row]:
    """All results of a folder."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(out.rglob("*.json"))]


def write_page(results: Sequence[Row]) -> str:
    """The figures in Markdown."""
    codes = ", ".join(sorted({row["code"] for row in results}))
    parts = [f"Made on {machine()}; package files {codes}."]
    parts += _recall_part("Recall", [r for r in results if r["part"] == "memory"])
    parts += _recall_part("Topics on trial", [r for r in results if r["part"] == "topics"])
    parts += _readers_part([r for r in results if r["part"] == "readers"])
    parts += _threads_part([r for r in results if r["part"] == "threads"])
    parts += _costs_part([r for r in results if r["part"] == "memory"])
    return "\n\n".join(parts) + "\n"


def _group(results: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in results:
        found.setdefault((row["source"], row["how"]), []).append(row)
    return found


def _recall_part(title: str, results: Sequence[Row]) -> list[str]:
    """Recall at all budgets, and what is shown for it."""
    lines = []
    for (source, how), rows in _group(results).items():
        asked = [question for row in rows for question in row["asked"]]
        count = len(asked) // len(BUDGETS)
        lines.append([f"{source} {how}".strip(), str(len(rows)), str(count)])
        for budget in BUDGETS:
            lines[-1] += _figures([q for q in asked if q["budget"] == budget])
    heads = ["", "conversations", "questions"]
    heads += [f"{b:,}: {h}" for b in BUDGETS for h in ("recall", "all", "shown", "recalled")]
    return [f"## {title}", table(heads, lines)] if lines else []


def _figures(asked: Sequence[Row]) -> list[str]:
    """Recall and the share of whole ones; tokens shown, tokens recalled, each with precision."""
    if not asked:
        return ["-"] * 4
    recalls = [q["recall"] for q in asked]
    pairs = [("tokens", "evidence_tokens"), ("recalled", "recalled_evidence")]
    shown = [
        f"{mean(q[tokens] for q in asked):,.0f} "
        f"({show_share(share_of_evidence((q[tokens], q[held]) for q in asked))})"
        for tokens, held in pairs
    ]
    return [f"{mean(recalls):.3f}", f"{mean(r == 1 for r in recalls):.3f}", *shown]


def _readers_part(results: Sequence[Row]) -> list[str]:
    lines = []
    for (source, how), rows in _group(results).items():
        asked = [question for row in rows for question in row["asked"]]
        read = mean(q["reader_tokens"] for q in asked) if asked else 0.0
        best = [q["summed_up"] for q in asked if q.get("summed_up") is not None]
        summed = f"{sum(best)} of {len(best)}"
        lines.append([f"{source} {how}", str(len(asked)), *_figures(asked), f"{read:,.0f}", summed])
    heads = ["", "questions", "recall", "all", "shown", "recalled", "tokens of readers"]
    heads += ["best topic summed up"]
    return [f"## Readers, at {READ_BUDGET:,} tokens", table(heads, lines)] if lines else []


def _threads_part(results: Sequence[Row]) -> list[str]:
    lines = []
    for (source, _), rows in _group(results).items():
        for when, name in (("came", "as they come"), ("moved", "after they are moved")):
            judged = [ThreadScores(**row[when]) for row in rows if row[when]]
            if judged:
                scores = (f"{100 * mean(getattr(s, key) for s in judged):.1f}" for key in SCORES)
                lines.append([f"{source}, {name}", str(len(judged)), *scores])
    heads = ["", "conversations", "ARI", "1-1", "1-VI", "exact F1"]
    return ["## Topics", table(heads, lines)] if lines else []


def _costs_part(results: Sequence[Row]) -> list[str]:
    """CPU of turns and of splits, in milliseconds."""
    lines = []
    for (source, _), rows in _group(results).items():
        turns = [1_000 * seconds for row in rows for seconds in row["turns"]]
        splits = [1_000 * seconds for row in rows for seconds in row["splits"]]
        spent = sum(row["cpu"] for row in rows) / 60
        lines.append(
            [
                source,
                f"{len(turns):,}",
                *_spread(turns),
                f"{100 * len(splits) / len(turns):.0f}",
                *_spread(splits),
                f"{spent:.1f}",
            ]
        )
    times = ("mean", "median", "95 %")
    heads = ["", "turns", *(f"turn: {t}" for t in times), "splits in 100 turns"]
    heads += [*(f"split: {t}" for t in times), "CPU minutes in all"]
    title = "## CPU of a turn and of a split, in milliseconds"
    return [title, table(heads, lines)] if lines else []


def _spread(values: Sequence[float]) -> list[str]:
    """Mean, median and 95th percentile."""
    if len(values) < 2:
        return ["-"] * 3
    cuts = quantiles(values, n=20, method="inclusive")
    return [f"{value:,.0f}" for value in (mean(values), cuts[9], cuts[18])]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and print or write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with memory/ and threads/ in it")
    parser.add_argument("--out", type=Path, required=True, help="folder of results")
    parser.add_argument("--page", type=Path, help="file for the figures; else they are printed")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of names of files")
    parser.add_argument("--without", nargs="*", default=[], help="likewise, of files to leave out")
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--first", type=int, default=10**6, help="conversations of a file at most")
    parser.add_argument("--no-run", action="store_true", help="only write the page")
    given = parser.parse_args(arguments)
    code = code_hash()
    others = {row["code"] for row in read_results(given.out)} - {code}
    if others and not given.no_run:
        sys.exit(
            f"{given.out} holds results of another version of the code ({', '.join(others)}, "
            f"now {code}): choose another folder with --out, or delete that one"
        )
    units = () if given.no_run else find_units(given.folder, given.parts, given.first)
    for unit in units:
        if not any(part in unit.source for part in given.only):
            continue
        if any(part in unit.source for part in given.without):
            continue
        began = time.perf_counter()
        if run_unit(unit, given.out, code):
            print(f"{unit.name}: {time.perf_counter() - began:.0f} s", flush=True)
    page = write_page(read_results(given.out))
    if given.page is None:
        print(page)
    else:
        given.page.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
