"""`topicloom eval idle`: what is recalled where nothing is needed, and where little is said."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from statistics import mean

from pydantic import TypeAdapter, ValidationError
from rich.table import Table

from topicloom import ConfigurationError, InputError
from topicloom_app.cli.console import print_dim
from topicloom_app.recordings.conversations import Conversation
from topicloom_lab.cli.output import make_table, open_figures
from topicloom_lab.comparison.config import SAMPLE, load_source, name_of
from topicloom_lab.idle.measure import IdleEvaluation, RecallResult
from topicloom_lab.idle.messages import (
    OPENING,
    PlacedMessage,
    WrittenMessage,
    load_messages,
    load_openings,
    place_messages,
)
from topicloom_lab.opened import Row, Rows

_LANGUAGES = {"en": "English", "zh": "Chinese"}


@dataclass(frozen=True, slots=True)
class AskedMessage:
    """A message and what was recalled for it."""

    message: WrittenMessage
    result: RecallResult


Group = tuple[str, Sequence[AskedMessage]]
"""Messages under a name."""


def run_idle(
    files: Sequence[str],
    messages: Path | None,
    out: Path | None,
    evaluation: IdleEvaluation,
    *,
    as_json: bool,
) -> None:
    """Replay the conversations that messages were written for, and ask these.

    The arguments are the options of the command. A result that stands in the file of results is not
    asked for again.

    Raises:
        ConfigurationError: If a message does not fit its conversation, or the results are something
            else's.
        InputError: If no message was written for any of the conversations.
        NotAConversationError: If a file holds something else.
        StorageUnavailableError: If a result cannot be written.
    """
    console, given = open_figures(as_json=as_json), files or (SAMPLE,)
    written = load_messages(messages)
    openings = load_openings() if messages is None else {}
    rows, asked = Rows(out, evaluation.setup), list[AskedMessage]()
    for conversation in (c for file in given for c in load_source(file)):
        placed = place_messages(conversation, written, openings)
        cases = [f"{conversation.id} {p.message.id}" for p in placed]
        with closing(_makers(evaluation, conversation, placed)) as makers:
            found = rows.complete(cases, makers, console, f"{conversation.id}: messages")
        asked += map(_read_row, placed, found)
    if not asked:
        raise InputError(
            "no message was written for a conversation of {conversations}: name a file of messages"
            " for it with --messages",
            conversations=", ".join(given),
        )
    where = f"{evaluation.budget:,} tokens: {', '.join(map(name_of, given))}"
    for table in (show_idle(asked, where), show_short(asked, where)):
        if table is not None:
            console.print(table)
    if not files:
        print_dim(
            console,
            "Only the packaged sample was asked; give RealMem's file, too, for the messages of two"
            " of its people and for its openings.",
        )


def _makers(
    evaluation: IdleEvaluation, conversation: Conversation, placed: Sequence[PlacedMessage]
) -> Generator[Callable[[], Row]]:
    """What makes the row of each message, when all was said before it."""
    with tempfile.TemporaryDirectory() as folder:
        for ask in evaluation.replay(conversation, placed, Path(folder)):
            yield partial(_make_row, ask)


def _make_row(ask: Callable[[], RecallResult]) -> Row:
    result = ask()
    return asdict(result) | {"recall": round(result.recall, 4)}


def _read_row(placed: PlacedMessage, row: Row) -> AskedMessage:
    """Raises `ConfigurationError` if the row is no result."""
    try:
        return AskedMessage(placed.message, TypeAdapter(RecallResult).validate_python(row))
    except ValidationError as error:
        raise ConfigurationError(
            "the row of {case!r} is no result of `eval idle`: choose another file with --out",
            case=row["case"],
        ) from error


def show_idle(asked: Sequence[AskedMessage], where: str) -> Table | None:
    """Quotes and tokens for the messages that need nothing; None if there are none.

    Openings stand apart: others wrote them, some of them are long, and all are in English.
    """
    idle = [a for a in asked if a.message.kind == "idle"]
    openings = [a for a in idle if a.message.category == OPENING]
    written = [a for a in idle if a.message.category != OPENING]
    return _show(
        f"Recalled for messages that need nothing, {where}",
        ("quotes", "tokens", "nothing"),
        [*_group(written), [("openings of other talk", openings)]],
        lambda results: (
            f"{mean(r.quotes for r in results):.1f}",
            f"{mean(r.tokens for r in results):,.0f}",
            f"{mean(not r.quotes for r in results):.3f}",
        ),
        "nothing: share of the messages for which nothing is quoted",
    )


def show_short(asked: Sequence[AskedMessage], where: str) -> Table | None:
    """Recall of the evidence, and its price, for the short messages; None if there are none."""
    return _show(
        f"Recalled for short messages that need some of it, {where}",
        ("recall", "in view", "of the rest", "tokens", "precision"),
        _group([a for a in asked if a.message.kind == "short"]),
        lambda results: (
            f"{mean(r.recall for r in results):.3f}",
            f"{mean(r.in_view / r.pieces for r in results):.3f}",
            _recall_of_the_rest(results),
            f"{mean(r.tokens for r in results):,.0f}",
            _precision(results),
        ),
        "recall: of the evidence, in view or recalled. of the rest: of what was not in view."
        " precision: share of the recalled tokens that is evidence",
    )


def _recall_of_the_rest(results: Sequence[RecallResult]) -> str:
    found = [r.recalled / rest for r in results if (rest := r.pieces - r.in_view)]
    return f"{mean(found):.3f}" if found else "-"


def _precision(results: Sequence[RecallResult]) -> str:
    tokens = sum(r.tokens for r in results)
    return f"{sum(r.evidence_tokens for r in results) / tokens:.3f}" if tokens else "-"


def _group(asked: Sequence[AskedMessage]) -> list[list[Group]]:
    """Messages by language, by category, by conversation if there are several, and all."""
    parts = [
        _split(asked, lambda m: _LANGUAGES[m.lang]),
        _split(asked, lambda m: m.category),
        _split(asked, lambda m: m.conversation),
    ]
    return [*parts[:2], *(parts[2:] if len(parts[2]) > 1 else ()), [("all", asked)]]


def _split(asked: Sequence[AskedMessage], key: Callable[[WrittenMessage], str]) -> list[Group]:
    names = dict.fromkeys(key(a.message) for a in asked)
    return [(name, [a for a in asked if key(a.message) == name]) for name in names]


def _show(
    title: str,
    heads: Sequence[str],
    parts: Sequence[Sequence[Group]],
    measure: Callable[[Sequence[RecallResult]], Sequence[str]],
    caption: str,
) -> Table | None:
    shown = [groups for part in parts if (groups := [group for group in part if group[1]])]
    lines = [
        (name, str(len(asked)), *measure([a.result for a in asked]))
        for part in shown
        for name, asked in part
    ]
    if not lines:
        return None
    table = make_table(title, ("kind", "messages", *heads), lines, caption)
    for last in accumulate(map(len, shown)):
        table.rows[last - 1].end_section = True
    return table
