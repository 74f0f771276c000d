"""Running a comparison: a strategy hears a conversation, is asked about it, and is timed."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from topicloom import Embedder
from topicloom.lab import Language
from topicloom_app.recordings.conversations import Conversation, Question, RecordedMessage
from topicloom_lab.comparison.config import Comparison, load_source, place_of
from topicloom_lab.comparison.measures import (
    QuestionResult,
    answer_stands_in,
    count_evidence,
    evidence_in,
    exact_match,
    f1_score,
    judge,
    reply_to,
)
from topicloom_lab.comparison.results import Cell, Key, Results
from topicloom_lab.strategies.base import Context, Strategy, StrategyOptions, cost_of, line_of
from topicloom_lab.strategies.catalogue import STRATEGIES, StrategyEntry


@dataclass(frozen=True, slots=True)
class Bench:
    """The models that strategies are measured with."""

    embedder: Embedder
    """The same for all of them; it should remember what it embedded."""
    code: str
    """Version of this package, for the results."""
    chat: BaseChatModel | None = None
    """Writes summaries; None for extracts."""
    reader: BaseChatModel | None = None
    """Answers from contexts; None for the oracle."""
    judge: BaseChatModel | None = None
    """Judges answers."""


class Stopwatch:
    """Wall and CPU time of the process, in seconds, over all stretches that it runs."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self._began = 0.0, 0.0

    def __enter__(self) -> Stopwatch:
        """Start."""
        self._began = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.seconds += time.perf_counter() - self._began[0]
        self.cpu_seconds += time.process_time() - self._began[1]

    @property
    def times(self) -> dict[str, float]:
        """Both times, as results have them."""
        return {"seconds": round(self.seconds, 6), "cpu_seconds": round(self.cpu_seconds, 6)}


@dataclass(frozen=True)
class Trial:
    """One conversation and its questions."""

    source: str
    """The file or generator that it is from."""
    conversation: Conversation
    questions: Sequence[Question]
    """Questions to ask, in order."""
    bench: Bench
    told: Callable[[str, int, int], None] = lambda *_: None
    """Is told the strategy, and how many messages and questions are done, of how many."""

    def run(self, recipe: StrategyEntry, budgets: Sequence[int]) -> list[Cell]:
        """Have one strategy hear the conversation, and ask it under some budgets.

        A strategy is somebody else's code: what it raises costs its cells, not the run.
        """
        try:
            with tempfile.TemporaryDirectory() as folder:
                return self._measured(recipe, budgets, Path(folder))
        except Exception as error:  # noqa: BLE001 - see above; the report names it
            failure = f"{type(error).__name__}: {error}"
            return [self._cell(recipe, b, {"failure": failure}) for b in budgets]

    def warm_up(self) -> None:
        """Make the vectors of messages and questions before anybody's time is taken.

        They are remembered: without this the first strategy would pay for all others.
        """
        asked = [question.question for question in self.questions]
        self.bench.embedder.embed([*map(line_of, self._spoken), *asked])

    def _measured(self, recipe: StrategyEntry, budgets: Sequence[int], folder: Path) -> list[Cell]:
        bench = self.bench
        options = StrategyOptions(bench.embedder, folder, max(budgets), self.language, bench.chat)
        strategy = recipe.make(options)
        listening, calls = Stopwatch(), Counter[str]()
        asked: dict[int, list[QuestionResult]] = {budget: [] for budget in budgets}
        done, steps = 0, len(self._spoken) + len(self.questions)
        try:
            for chunk, due in self.stretches():
                for part in _cut(chunk):
                    with listening:
                        calls += Counter(strategy.feed(part))
                    done += len(part)
                    self.told(recipe.name, done, steps)
                for question in due:
                    for budget, rows in asked.items():
                        rows.append(self._ask(strategy, question, budget))
                    done += 1
                    self.told(recipe.name, done, steps)
        finally:
            strategy.close()
        written = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        heard = {"calls": calls, "written": written, **listening.times}
        return [self._cell(recipe, b, {"asked": rows, **heard}) for b, rows in asked.items()]

    def _ask(self, strategy: Strategy, question: Question, budget: int) -> QuestionResult:
        with Stopwatch() as watch:
            context = strategy.context(question.question, budget)
        text, evidence = context.text, tuple(dict.fromkeys(question.evidence))
        held = count_evidence([self.texts[i] for i in evidence], text)
        return QuestionResult.model_validate(
            {
                "question": question.id,
                "category": question.category,
                "evidence": evidence,
                "found": evidence_in(evidence, context.sources, self.texts, text),
                "shown": held.share,
                "evidence_tokens": held.held,
                "answer_in": answer_stands_in(text, question.answer),
                "tokens": context.tokens,
                "messages": len(context.messages),
                "originals": len(context.sources),
                "calls": context.calls,
                **watch.times,
                **self._answered(context, question),
            }
        )

    def _answered(self, context: Context, question: Question) -> Mapping[str, object]:
        """The reading model's answer from a context, and the judging model's verdict."""
        reader, judging = self.bench.reader, self.bench.judge
        if reader is None:
            return {}
        reply = reply_to(reader, context, question.question, self.language)
        return {
            "reply": reply,
            "exact": exact_match(reply, question.answer),
            "f1": f1_score(reply, question.answer),
            "judged": judge(judging, question, reply, self.language) if judging else None,
        }

    def stretches(self) -> Iterator[tuple[Sequence[RecordedMessage], Sequence[Question]]]:
        """Stretches of the conversation, each with the questions that are asked after it."""
        said = self.conversation.messages
        due: dict[int, list[Question]] = {}
        for question in self.questions:
            due.setdefault(place_of(question, said), []).append(question)
        begin = 0
        for place in sorted(due):
            yield [m for m in said[begin:place] if m.text.strip()], due[place]
            begin = place

    def _cell(self, recipe: StrategyEntry, budget: int, more: Mapping[str, object]) -> Cell:
        return Cell.model_validate(
            {
                "source": self.source,
                "conversation": self.conversation.id,
                "strategy": recipe.name,
                "budget": budget,
                "code": self.bench.code,
                "heard": len(self._spoken),
                "history": self._history,
                **more,
            }
        )

    @cached_property
    def language(self) -> Language:
        """Of the conversation."""
        return "zh" if self.conversation.lang.startswith("zh") else "en"

    @cached_property
    def _spoken(self) -> list[RecordedMessage]:
        return [m for m in self.conversation.messages if m.text.strip()]

    @cached_property
    def _history(self) -> int:
        return sum(map(cost_of, self._spoken))

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Texts of all messages by id."""
        return {m.id: m.text for m in self.conversation.messages}


_PART = 40
"""Messages that a strategy hears at least before it is said how far it got."""


def _cut(messages: Sequence[RecordedMessage]) -> Iterator[Sequence[RecordedMessage]]:
    """Messages in parts that end with a reply: no round is cut."""
    begin = 0
    for place in range(1, len(messages)):
        ended = messages[place - 1].role == "assistant" and messages[place].role == "user"
        if ended and place - begin >= _PART:
            yield messages[begin:place]
            begin = place
    yield messages[begin:]


def open_cells(
    comparison: Comparison, results: Results, again: Collection[str] = ()
) -> dict[Key, None]:
    """Cells that have to be run, in order: those not finished, those that failed, and `again`.

    Raises `NotAConversationError` if a file holds something else.
    """
    done = {key for key, cell in results.cells().items() if cell.failure is None}
    return {
        key: None
        for source in comparison.files
        for conversation in load_source(source, comparison.folder)
        if comparison.chosen(conversation)
        for recipe in _recipes(comparison)
        for budget in comparison.budgets
        if (key := (source, conversation.id, recipe.name, budget)) not in done
        or recipe.name in again
    }


def run_comparison(
    comparison: Comparison,
    results: Results,
    bench: Bench,
    cells: Collection[Key],
    told: Callable[[str, int, int], None] = lambda *_: None,
) -> Iterator[Cell]:
    """Run cells, and keep each as soon as it is finished; yields them.

    Args:
        comparison: What they are of.
        results: Where they go.
        bench: What to run with.
        cells: Those to run.
        told: Is told how far the cells of a strategy have got: name, steps done, steps in all.

    Raises:
        NotAConversationError: If a file holds something else.
        StorageUnavailableError: If a result cannot be written.
    """
    for source in comparison.files:
        for conversation in load_source(source, comparison.folder):
            waiting = [key for key in cells if key[:2] == (source, conversation.id)]
            if not waiting:
                continue
            trial = Trial(source, conversation, comparison.chosen(conversation), bench, told)
            for recipe in _recipes(comparison):
                budgets = [budget for _, _, name, budget in waiting if name == recipe.name]
                for group in _groups(recipe, budgets):
                    trial.warm_up()
                    for cell in trial.run(recipe, group):
                        results.add(cell)
                        yield cell


def _recipes(comparison: Comparison) -> list[StrategyEntry]:
    """The strategies that can run here."""
    found = [STRATEGIES[name] for name in comparison.strategies]
    return [recipe for recipe in found if recipe.missing is None]


def _groups(recipe: StrategyEntry, budgets: list[int]) -> list[list[int]]:
    """Budgets that one instance of a strategy serves together."""
    if recipe.by_budget:
        return [[budget] for budget in budgets]
    return [budgets] if budgets else []


_PACKAGES = (
    "topicloom",
    "topicloom-lab",
    "langgraph",
    "langchain-core",
    "langchain",
    "langmem",
    "mem0ai",
    "qdrant-client",
    "faiss-cpu",
    "onnxruntime",
    "tokenizers",
    "numpy",
)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on, as far as they are here."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def machine() -> str:
    """The machine in one line."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def code_hash() -> str:
    """Twelve hex digits that change with any line of package or laboratory: versions are coarse."""
    digest = sha256()
    for root in (Path(str(files(package))) for package in ("topicloom", "topicloom_lab")):
        for path in sorted(root.rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
