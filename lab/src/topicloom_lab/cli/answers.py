"""`topicloom eval answers`: the same model answers questions from what several ways recall."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import mean

from rich.table import Table

from topicloom.cli.console import print_dim
from topicloom.errors import InputError
from topicloom.index.encoders import default_embedder
from topicloom.recordings.conversations import Question
from topicloom_lab.cli.output import make_table, open_figures, show_mean
from topicloom_lab.comparison.config import Comparison, load_named, name_of
from topicloom_lab.comparison.measures import (
    answer_words,
    evidence_in,
    exact_match,
    f1_score,
    reply_to,
)
from topicloom_lab.comparison.results import mean_interval
from topicloom_lab.comparison.run import Bench, Trial
from topicloom_lab.opened import ModelOptions, OpenedModel, Row, Rows
from topicloom_lab.strategies.base import Context, StrategyOptions
from topicloom_lab.strategies.catalogue import STRATEGIES

WAYS = ("topicloom", "hybrid", "last")
"""Strategies of `eval run`: topicloom, a search, a sliding window."""
_LONGEST = 12
"""Words of an expected answer at most: longer ones are never met word for word."""


def run_answers(
    files: Sequence[str],
    model: ModelOptions,
    budget: int,
    skip: Sequence[str],
    questions: int,
    conversations: int,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Have the questions answered that are not yet, and print how well and at what price.

    The arguments are the options of the command.

    Raises:
        ConfigurationError: If no such model can be opened, or the results are something else's.
        InputError: If there is no question.
        NotAConversationError: If a file holds something else.
        StorageUnavailableError: If a result cannot be written.
    """
    console = open_figures(as_json=as_json)
    rows = Rows(out, {"model": model.name, "budget": budget})
    opened, asked = model.open(), list[Row]()
    bench = Bench(default_embedder(), "")
    drawn = Comparison(files=tuple(files), questions=questions, out=Path())
    for conversation in load_named(files, conversations):
        short = [q for q in conversation.questions if q.category not in skip and _is_short(q)]
        chosen = drawn.chosen(conversation.model_copy(update={"questions": tuple(short)}))
        trial = Trial("", conversation, chosen, bench)
        ids = [question.id for _, due in trial.stretches() for question in due]
        for way in WAYS:
            cases = [f"{conversation.id} {id_} {way}" for id_ in ids]
            with closing(_makers(trial, way, budget, opened)) as makers:
                asked += rows.complete(cases, makers, console, f"{conversation.id} {way}")
        if ids:
            # A table a conversation: a run may take hours.
            console.print(answered(asked, files, f"{model.name}, {budget:,} tokens of context"))
    if not asked:
        raise InputError("no question of these conversations has evidence and a short answer")
    print_dim(console, f"Answers: {out}")


def _is_short(question: Question) -> bool:
    return 0 < len(answer_words(question.answer)) <= _LONGEST


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


def answered(rows: Sequence[Row], sources: Sequence[str], title: str) -> Table:
    """How well was answered by file and way, with intervals, and what the model read for it."""
    files = [f"{name_of(source)}/" for source in sources]
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
        title,
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
