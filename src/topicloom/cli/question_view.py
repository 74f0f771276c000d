"""How a question is shown: what was quoted for it, and whether that is what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from topicloom.cli.console import one_line
from topicloom.cli.excerpts import excerpt, shortened
from topicloom.cli.questions import Asked, Evidence
from topicloom.cli.quoted import counted

_SHOWN = 2
"""Messages of a question's evidence that are shown with their words."""
_BESIDE = 12


def question_view(asked: Asked, width: int, *, composed: bool) -> Table:
    """A question with what was found for it.

    Args:
        asked: The question.
        width: Columns of the terminal.
        composed: Whether a model wrote the reply; a reply that only quotes is not shown twice.
    """
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, justify="right", width=8)
    table.add_column(no_wrap=True)
    room = width - _BESIDE
    mark = ("✓", "bold green") if asked.complete else ("✗", "bold yellow")
    table.add_row(Text(*mark), Text(shortened(asked.question.question, room), style="bold"))
    if composed:
        table.add_row(Text("reply", style="dim"), Text(shortened(asked.reply, room)))
    if asked.question.answer:
        answer = Text(shortened(asked.question.answer, room), style="dim")
        table.add_row(Text("expected", style="dim"), answer)
    for label, line in _evidence(asked, room):
        table.add_row(Text(label, style="dim"), line)
    return table


def brief_view(asked: Asked, width: int) -> Text:
    """A question on one line, for recordings with many."""
    found = sum(e.found for e in asked.evidence)
    return Text.assemble(
        ("✓ ", "bold green") if asked.complete else ("✗ ", "bold yellow"),
        (f"{found}/{len(asked.evidence)} ", "dim"),
        shortened(asked.question.question, width - 8),
    )


def score_view(asked: Sequence[Asked]) -> Text:
    """How many questions had all of their evidence."""
    complete = sum(a.complete for a in asked)
    found = sum(e.found for a in asked for e in a.evidence)
    wanted = sum(len(a.evidence) for a in asked)
    return Text.assemble(
        (f"{complete} of {len(asked)} questions", "bold"),
        f" had all they rest on in front of the model, {found} of {wanted} messages in all.",
    )


def _evidence(asked: Asked, room: int) -> Iterator[tuple[str, Text]]:
    found = [e for e in asked.evidence if e.found]
    for evidence in found[:_SHOWN]:
        yield "in view" if evidence.in_view else "quoted", _line(evidence, asked, room)
    if found[_SHOWN:]:
        names = ", ".join(f"{e.record.id} from {one_line(e.topic)}" for e in found[_SHOWN:])
        yield "and", Text(shortened(names, room), style="green")
    missing = [e.record.id for e in asked.evidence if not e.found]
    if missing:
        names = ", ".join(missing)
        yield (
            "missing",
            Text(shortened(f"{names}; quoted {counted(asked.receipt.quoted)}", room), "yellow"),
        )


def _line(evidence: Evidence, asked: Asked, room: int) -> Text:
    record, topic = evidence.record, shortened(evidence.topic, 26)
    head = f"{record.id}, {record.day}" + (f", from {topic}" if topic else "")
    rest = excerpt(record.text, asked.question.answer, max(20, room - Text(head).cell_len - 4))
    return Text.assemble((head, "green"), f" “{rest}”")
