"""`topicloom eval answers`: the same model answers questions from what several ways recall."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from statistics import mean

from rich.table import Table

from topicloom import ConfigurationError, InputError, default_embedder
from topicloom_app.cli.console import print_dim
from topicloom_app.recordings.conversations import Conversation, Question
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
from topicloom_lab.note_layouts import LAYOUTS, lay_out
from topicloom_lab.opened import ModelOptions, OpenedModel, Row, Rows
from topicloom_lab.strategies.base import Context, Strategy, StrategyOptions
from topicloom_lab.strategies.catalogue import STRATEGIES
from topicloom_lab.strategies.session_graph import SessionGraphStrategy

WAYS = ("topicloom", "hybrid", "last")
"""Strategies of `eval run`: topicloom, a search, a sliding window."""


def run_answers(
    files: Sequence[str],
    model: ModelOptions,
    budget: int,
    skip: Sequence[str],
    questions: int,
    conversations: int,
    out: Path | None,
    *,
    layouts: Sequence[str] = (),
    longest: int = 12,
    as_json: bool,
) -> None:
    """Have the questions answered that are not yet, and print how well and at what price.

    The arguments are the options of the command.

    Raises:
        ConfigurationError: If no such model can be opened, no such layout exists, or the results
            are something else's.
        InputError: If there is no question.
        NotAConversationError: If a file holds something else.
        StorageUnavailableError: If a result cannot be written.
    """
    _check_layouts(layouts)
    console = open_figures(as_json=as_json)
    ways = (*WAYS, *dict.fromkeys(layouts))
    rows = Rows(out, {"model": model.name, "budget": budget})
    opened, asked, due = model.open(), list[Row](), 0
    bench = Bench(default_embedder(), "")
    drawn = Comparison(files=tuple(files), questions=questions, out=Path())
    for conversation in load_named(files, conversations):
        chosen = drawn.chosen(_drop_questions(conversation, skip, longest))
        trial = Trial("", conversation, chosen, bench)
        ids = [question.id for _, asked_here in trial.stretches() for question in asked_here]
        cases = [f"{conversation.id} {id_} {way}" for id_ in ids for way in ways]
        due += len(cases)
        with closing(_makers(trial, ways, budget, opened)) as makers:
            asked += rows.complete(cases, makers, console, conversation.id)
        if asked:
            # A table a conversation: a run may take hours.
            title = f"{model.name}, {budget:,} tokens of context"
            console.print(answered(asked, files, title, ways))
    if not due:
        raise InputError("no question of these conversations has evidence and a short answer")
    if model.requests and len(asked) < due:
        print_dim(
            console,
            "{due} answers are missing: have {requests} answered, and run this"
            " again with --replies FILE",
            due=due - len(asked),
            requests=model.requests,
        )
    print_dim(console, f"Answers: {out}")


def _check_layouts(names: Sequence[str]) -> None:
    """Raise `ConfigurationError` if there is no layout of one of the names."""
    for name in names:
        if name not in LAYOUTS:
            known = ", ".join(LAYOUTS)
            raise ConfigurationError(
                "there is no layout {name!r}: take some of {known}", name=name, known=known
            )


def _drop_questions(conversation: Conversation, skip: Sequence[str], longest: int) -> Conversation:
    """The conversation without the questions of some categories, and those with long answers."""
    kept = tuple(
        question
        for question in conversation.questions
        if question.category not in skip and 0 < len(answer_words(question.answer)) <= longest
    )
    return conversation.model_copy(update={"questions": kept})


def print_layouts(*, as_json: bool) -> None:
    """Print the forms that a note can be tried in."""
    rows = [(name, layout.what) for name, layout in LAYOUTS.items()]
    open_figures(as_json=as_json).print(make_table("Layouts", ("layout", "a note has"), rows))


def _makers(
    trial: Trial, ways: Sequence[str], budget: int, opened: OpenedModel
) -> Generator[Callable[[], Row]]:
    """What answers each question of a conversation each way, when all was said before it."""
    with ExitStack() as stack:
        strategies: dict[str, Strategy] = {}
        for way in WAYS:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            options = StrategyOptions(trial.bench.embedder, folder, budget, trial.language)
            strategies[way] = STRATEGIES[way].make(options)
            stack.callback(strategies[way].close)
        session = strategies[WAYS[0]]
        assert isinstance(session, SessionGraphStrategy)
        for chunk, due in trial.stretches():
            for strategy in strategies.values():
                strategy.feed(chunk)
            for question in due:
                for way in ways:
                    if way in WAYS:
                        recall = partial(strategies[way].context, question.question, budget)
                    else:
                        recall = partial(lay_out, LAYOUTS[way], session, question.question, budget)
                    yield partial(_answer, trial, question, way, recall, opened)


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


def answered(
    rows: Sequence[Row], sources: Sequence[str], title: str, ways: Sequence[str] = WAYS
) -> Table:
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
        for way in ways
        if any(row["way"] == way for row in here)
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
    first = {_question(row): _worth(row)[1] for row in all_ways if row["way"] == WAYS[0]}
    calls = [call for row in rows for call in row["calls"]]
    yield from (str(len(rows)), _interval(exact), _interval(f1))
    pairs = zip(map(_question, rows), f1, strict=True)
    yield _interval([first[question] - here for question, here in pairs if question in first])
    yield f"{mean(row['recall'] for row in rows):.3f}"
    yield from (show_mean(calls, key) for key in ("read", "cached", "written"))
    yield str(sum(bool(row["failure"]) for row in rows))


def _question(row: Row) -> str:
    """Conversation and question of a case."""
    return str(row["case"]).rpartition(" ")[0]


def _worth(row: Row) -> tuple[float, float]:
    """Exact match and F1; nothing for a request that failed."""
    reply, expected = row["reply"], row["expected"]
    if row["failure"]:
        return 0.0, 0.0
    return float(exact_match(reply, expected)), f1_score(reply, expected)


def _interval(values: Sequence[float]) -> str:
    by, low, high = mean_interval(values, seed=0)
    return f"{by:.3f} ({low:.3f}, {high:.3f})"
