"""`topicloom eval answers`: the same model answers questions from what several ways recall."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean

from rich.console import Console
from rich.table import Table

from topicloom.cli.console import print_dim
from topicloom.errors import InputError
from topicloom.index.encoders import default_embedder
from topicloom.recordings.conversations import Question
from topicloom_lab.cli.output import make_table, show_mean
from topicloom_lab.comparison.config import Comparison, load_named, name_of
from topicloom_lab.comparison.measures import (
    answer_words,
    evidence_in,
    exact_match,
    f1_score,
    reply_to,
)
from topicloom_lab.comparison.summary import mean_interval
from topicloom_lab.comparison.trial import Bench, Trial
from topicloom_lab.opened import OpenedModel, RecordedRun, Row, Rows
from topicloom_lab.strategies.base import Context, StrategyOptions
from topicloom_lab.strategies.catalogue import STRATEGIES

WAYS = ("topicloom", "hybrid", "last")
"""Strategies of `eval run`: topicloom, a search, a sliding window."""
_LONGEST = 12
"""Words of an expected answer at most: longer ones are never met word for word."""


@dataclass(frozen=True, slots=True)
class AnswersOptions(RecordedRun):
    """The options of the command."""

    budget: int
    """Tokens of a context."""
    skip: Sequence[str]
    """Categories that are left out."""


def run_answers(options: AnswersOptions, console: Console) -> None:
    """Have the questions answered that are not yet, and print how well and at what price.

    Raises:
        ConfigurationError: If no such model can be opened, or the results are something else's.
        InputError: If there is no question.
        NotAConversationError: If a file holds something else.
        StorageUnavailableError: If a result cannot be written.
    """
    rows = Rows(options.out, {"model": options.model.name, "budget": options.budget})
    opened, asked = options.model.open(), list[Row]()
    for trial in _trials(options):
        questions = [question for _, due in trial.stretches() for question in due]
        for way in WAYS:
            cases = [f"{trial.conversation.id} {q.id} {way}" for q in questions]
            with closing(_makers(trial, way, options.budget, opened)) as makers:
                asked += rows.complete(cases, makers, console, f"{trial.conversation.id} {way}")
        if questions:
            # A table a conversation: a run may take hours.
            console.print(answered(asked, options))
    if not asked:
        raise InputError("no question of these conversations has evidence and a short answer")
    print_dim(console, f"Answers: {options.out}")


def _trials(options: AnswersOptions) -> Iterator[Trial]:
    """The conversations with the questions that are asked, named after their files."""
    bench = Bench(default_embedder(), "")
    drawn = Comparison(files=tuple(options.files), questions=options.questions, out=Path())
    for conversation in load_named(options.files, options.conversations):
        short = tuple(
            question
            for question in conversation.questions
            if question.category not in options.skip
            and 0 < len(answer_words(question.answer)) <= _LONGEST
        )
        conversation = conversation.model_copy(update={"questions": short})
        yield Trial("", conversation, drawn.chosen(conversation), bench)


def _makers(
    trial: Trial, way: str, budget: int, opened: OpenedModel
) -> Generator[Callable[[], Row]]:
    """What answers each question of a conversation, when all was said before it."""
    with tempfile.TemporaryDirectory() as folder:
        options = StrategyOptions(trial.bench.embedder, Path(folder), budget, trial.language)
        strategy = STRATEGIES[way].make(options)
        try:
            for chunk, due in trial.stretches():
                strategy.feed(chunk)
                for question in due:
                    recall = partial(strategy.context, question.question, budget)
                    yield partial(_answer, trial, question, way, recall, opened)
        finally:
            strategy.close()


def _answer(
    trial: Trial, question: Question, way: str, recall: Callable[[], Context], opened: OpenedModel
) -> Row:
    """The model's answer from what was recalled; an empty one if it failed."""
    context = recall()
    reply, row = opened.attempt(
        lambda model: reply_to(model, context, question.question, trial.language)
    )
    found = evidence_in(question.evidence, context.sources, trial.texts, context.text)
    return {
        "way": way,
        "category": question.category,
        "question": question.question,
        "expected": question.answer,
        "reply": reply or "",
        "recall": round(len(found) / len(set(question.evidence)), 4),
        **row,
    }


def answered(rows: Sequence[Row], options: AnswersOptions) -> Table:
    """How well was answered by file and way, with intervals, and what the model read for it."""
    files = [f"{name_of(file)}/" for file in options.files]
    lines = [
        (
            file.rstrip("/") or "all",
            way,
            *_figures([row for row in here if row["way"] == way], here),
        )
        for file in (*(files if len(files) > 1 else ()), "")
        if (here := [row for row in rows if row["case"].startswith(file)])
        for way in WAYS
    ]
    heads = ("questions", "exact", "F1", f"F1 behind {WAYS[0]}", "recall")
    return make_table(
        f"{options.model.name}, {options.budget:,} tokens of context",
        ("asked in", "way", *heads, "tokens read", "cached", "written", "failed"),
        lines,
        "In brackets: 95 % of means over resampled questions. Recall: of the evidence. Tokens are"
        " means of a question.",
    )


def _figures(rows: Sequence[Row], all_ways: Sequence[Row]) -> Iterator[str]:
    exact, f1 = zip(*map(_worth, rows), strict=True)
    first = [_worth(row)[1] for row in all_ways if row["way"] == WAYS[0]]
    calls = [call for row in rows for call in row["calls"]]
    yield from (str(len(rows)), _interval(exact), _interval(f1))
    yield _interval([best - here for best, here in zip(first, f1, strict=True)])
    yield f"{mean(row['recall'] for row in rows):.3f}"
    yield from (show_mean(calls, key) for key in ("read", "cached", "written"))
    yield str(sum(bool(row["failure"]) for row in rows))


def _worth(row: Row) -> tuple[float, float]:
    """Exact match and F1; nothing for a request that failed."""
    reply, expected = row["reply"], row["expected"]
    if row["failure"]:
        return 0.0, 0.0
    return float(exact_match(reply, expected)), f1_score(reply, expected)


def _interval(values: Sequence[float]) -> str:
    by, low, high = mean_interval(values, seed=0)
    return f"{by:.3f} ({low:.3f}, {high:.3f})"
