"""`topicloom eval memory`: evidence recall of a recorded conversation's questions."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from rich.table import Table

from topicloom import ConfigurationError
from topicloom_app.recordings.conversations import Conversation
from topicloom_lab.cli.output import make_table, open_bars, open_figures, write_rows
from topicloom_lab.comparison.config import load_source, name_of
from topicloom_lab.memory import BY_DATE, REASONS, MemoryEvaluation, MemoryRow
from topicloom_lab.opened import load_rows
from topicloom_lab.readers import ReaderChoice
from topicloom_lab.turn_costs import FedTurn


def run_memory(file: str, out: Path | None, evaluation: MemoryEvaluation, *, as_json: bool) -> None:
    """Replay every conversation of what `load_source` reads, and ask its questions.

    Rows are written conversation by conversation; what stands in the results file already is
    not run again.

    Raises:
        BrokenInvariantError: If a message of a conversation is lost, twice, or not what was said.
        ConfigurationError: If the results file is of other readers.
        NotAConversationError: If the file holds something else.
        StorageUnavailableError: If the results cannot be written.
    """
    console, conversations = open_figures(as_json=as_json), list(load_source(file))
    rows = _done(out, evaluation, conversations)
    finished = {row.conversation for row in rows}
    for conversation in conversations:
        if conversation.id in finished:
            console.print(f"[dim]{conversation.id}: in {out} already[/dim]")
            continue
        found = _one(conversation, evaluation, console)
        rows += found
        if out is not None:
            write_rows(out, (row.as_json() | evaluation.setup for row in found), add=True)
    for budget in evaluation.budgets:
        here = [row for row in rows if row.budget == budget]
        console.print(make_summary(here, f"{budget:,} tokens: {name_of(file)}"))
        console.print(by_reason(here), highlight=False)
    console.print(by_readers(rows, evaluation.readers), highlight=False)
    if evaluation.reviews != "none":
        console.print(by_date(rows))


def _one(
    conversation: Conversation, evaluation: MemoryEvaluation, console: Console
) -> list[MemoryRow]:
    rows: list[MemoryRow] = []
    archived = merged = 0
    spoken = sum(bool(m.text.strip()) for m in conversation.messages)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_bars(console) as progress,
    ):
        fed = progress.add_task(f"{conversation.id}: messages", total=spoken)
        questions = len(conversation.questions) * len(evaluation.budgets)
        asked = progress.add_task("questions", total=questions)
        for event in evaluation.run(conversation, Path(folder)):
            if isinstance(event, MemoryRow):
                rows.append(event)
                progress.advance(asked)
            elif isinstance(event, FedTurn):
                progress.advance(fed, event.messages)
            else:
                archived += len(event.archived)
                merged += len(event.merged)
    if evaluation.reviews != "none":
        console.print(f"{conversation.id}: reviews archived {archived} topics, merged {merged}")
    return rows


def make_summary(rows: Sequence[MemoryRow], where: str) -> Table:
    """Recall and precision by category; questions without evidence are left out.

    Recall counts whole messages; "its tokens" is the share of the evidence's tokens that are shown,
    in excerpts too, "answer" of questions whose expected answer stands in the context. "tokens" are
    all that is shown. Where a part of it was in view anyway, "recalled" are those that were
    recalled for the question. "evidence" is the share of the column before it that is evidence.
    """
    scored = [row for row in rows if row.evidence and row.category != BY_DATE]
    groups = [
        (c, [r for r in scored if r.category == c]) for c in sorted({r.category for r in scored})
    ]
    heads = [
        "questions",
        "recall",
        *REASONS,
        "all of it",
        "its tokens",
        "answer",
        "tokens",
        "evidence",
    ]
    in_view = any(row.recalled < row.tokens for row in scored)
    heads += ["recalled", "evidence"] if in_view else []
    table = make_table(
        f"Evidence recall at {where}",
        ("category", *heads),
        (
            (
                name,
                str(len(group)),
                _mean_known([r.recall for r in group]),
                _mean_known([r.recall == 1 for r in group]),
                _mean_known([r.shown for r in group]),
                _mean_known([r.answer_in for r in group]),
                *_precision([(r.tokens, r.evidence_tokens) for r in group]),
                *(
                    _precision([(r.recalled, r.recalled_evidence) for r in group])
                    if in_view
                    else ()
                ),
            )
            for name, group in (*groups, ("all", scored))
            if group
        ),
    )
    for row in table.rows[-2:-1]:
        row.end_section = True
    return table


def by_reason(rows: Sequence[MemoryRow]) -> str:
    """The share of the evidence that is missing for each reason, as a sentence."""
    scored = [row for row in rows if row.evidence and row.category != BY_DATE]
    shares = (f"{_mean_known([r.share_lost(why) for r in scored])} {why}" for why in REASONS)
    return f"Missing: {', '.join(shares)}."


def _precision(counts: Sequence[tuple[int, int]]) -> tuple[str, str]:
    """The mean of tokens, and the share of them that is evidence, by pairs of both."""
    tokens, held = (sum(column) for column in zip(*counts, strict=True))
    return f"{tokens / len(counts):.0f}", f"{held / tokens:.3f}" if tokens else "-"


def _mean_known(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{mean(known):.3f}" if known else "-"


def by_readers(rows: Sequence[MemoryRow], readers: ReaderChoice) -> str:
    """Who read topics for the questions, how often, and how many of the answers were of no use."""
    failed = {role: sum(row.failed.get(role, 0) for row in rows) for role in ("reader", "router")}
    # The calls of the stand-ins that followed those that failed are calls of the role, too.
    made = {role: sum(row.calls.get(role, 0) for row in rows) - n for role, n in failed.items()}
    read = sum(row.reader_tokens for row in rows) / max(1, len(rows))
    summed_up = [row.summed_up for row in rows if row.summed_up is not None]
    said = (
        f"Readers: {readers}, {made['reader']:,} calls and {made['router']:,} of the router; "
        f"{sum(failed.values()):,} could not be parsed; {read:,.0f} tokens a question."
    )
    if not summed_up:
        return said
    asked = len(summed_up)
    return f"{said} The best topic that they found is summed up for {sum(summed_up)} of {asked}."


def by_date(rows: Sequence[MemoryRow]) -> str:
    """The number of archived topics that are quoted when they are asked for, as a sentence."""
    asked = [row for row in rows if row.category == BY_DATE]
    quoted = sum(row.recall > 0 for row in asked)
    return f"Archived topics that are quoted when asked for by date: {quoted} of {len(asked)}."


_EARLIER = {"readers": "embedded", "agent": False, "topics": "own", "splitter": "embedded"}
"""What holds of rows of results that do not say it."""


def _done(
    out: Path | None, evaluation: MemoryEvaluation, conversations: Sequence[Conversation]
) -> list[MemoryRow]:
    """Rows of the results file that belong to this run, of conversations with all their questions.

    Raises:
        ConfigurationError: If other readers wrote any of it, or something else.
    """
    rows = [_EARLIER | row for row in load_rows(out)]
    others = sorted({str(row["readers"]) for row in rows} - {str(evaluation.readers)})
    if others:
        raise ConfigurationError(
            "{out} holds results of {others} readers: choose another file for those of {readers}"
            " ones",
            out=out,
            others=others[0],
            readers=evaluation.readers,
        )
    ours = [row for row in rows if evaluation.setup.items() <= row.items()]
    try:
        read = [TypeAdapter(MemoryRow).validate_python(row) for row in ours]
    except ValidationError as error:
        raise ConfigurationError(
            "{out} holds what is no row of results: choose another file with --out", out=out
        ) from error
    found = {(row.conversation, row.question, row.budget): row for row in read}
    found = {key: row for key, row in found.items() if row.budget in evaluation.budgets}
    parts = {
        conversation.id
        for conversation in conversations
        for question in conversation.questions
        for budget in evaluation.budgets
        if (conversation.id, question.id, budget) not in found
    }
    return [row for row in found.values() if row.conversation not in parts]
