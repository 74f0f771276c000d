"""How a receipt is shown: what a turn read, quoted, woke and cost."""

from __future__ import annotations

from collections import Counter

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from topicloom.cli.console import one_line
from topicloom.cli.excerpts import shortened
from topicloom.cli.quoted import runs
from topicloom.state.receipt import Call, Receipt
from topicloom.state.topics import Roster

_SCORES = 8
"""Topics whose scores are shown."""


def receipt_view(receipt: Receipt, roster: Roster) -> RenderableType:
    """A receipt as a few labelled lines."""
    title = f"turn {receipt.turn}, answering {receipt.user}, {receipt.seconds:.1f} s"
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, lines in (
        ("read", _scores(receipt, roster)),
        ("quoted", _quoted(receipt)),
        ("woke", _names(receipt.woken, roster)),
        ("fell asleep", _names(receipt.slept, roster)),
        ("prompt", _prompt(receipt)),
        ("planned", _planned(receipt)),
        ("edited", [" ".join(map(str, edit)) for edit in receipt.edits]),
        ("refused", [one_line(error) for error in receipt.edit_errors]),
        ("calls", [_calls(role, receipt) for role in _roles(receipt)]),
        ("failed", [f"{c.role}: {shortened(c.failure or '', 80)}" for c in receipt.failures]),
        ("also", [one_line(event) for event in receipt.events]),
    ):
        if lines:
            table.add_row(label, Text("\n".join(lines)))
    return Group(Rule(Text(title, style="bold"), style="dim", align="left"), table)


def name_of(topic: str, roster: Roster) -> str:
    """A topic's name for people, with its id."""
    return f"{topic} {shortened(roster[topic].name, 40)}" if topic in roster else topic


def _scores(receipt: Receipt, roster: Roster) -> list[str]:
    ranked = sorted(receipt.scores.items(), key=lambda pair: -pair[1])
    lines = [f"{score:.2f}  {name_of(topic, roster)}" for topic, score in ranked[:_SCORES]]
    rest = len(ranked) - len(lines)
    return [*lines, f"and {rest} less relevant ones"] if rest else lines


def _quoted(receipt: Receipt) -> list[str]:
    return [
        f"{note.topic} {shortened(note.name, 40)}: {runs(note.quotes)}"
        for note in receipt.quoted
        if note.quotes
    ]


def _names(topics: tuple[str, ...], roster: Roster) -> list[str]:
    names = ", ".join(name_of(topic, roster) for topic in topics)
    return [names] if names else []


def _prompt(receipt: Receipt) -> list[str]:
    if not receipt.sections:
        return []
    parts = ", ".join(f"{name} {tokens:,}" for name, tokens in receipt.sections.items())
    return [f"{sum(receipt.sections.values()):,} of {receipt.window:,} tokens: {parts}"]


def _planned(receipt: Receipt) -> list[str]:
    plan = receipt.plan
    return [f"{plan.kind}, focus {plan.focus or 'none'}"] if plan else []


def _roles(receipt: Receipt) -> list[tuple[str, str]]:
    return list(Counter((call.role, call.model) for call in receipt.calls))


def _calls(role: tuple[str, str], receipt: Receipt) -> str:
    calls: list[Call] = [c for c in receipt.calls if (c.role, c.model) == role]
    read, written = sum(c.input_tokens for c in calls), sum(c.output_tokens for c in calls)
    cached = sum(c.cached_tokens for c in calls)
    tokens = f", {read:,} tokens in ({cached:,} cached), {written:,} out" if read else ""
    slowest = max(c.seconds for c in calls)
    return f"{len(calls)} x {role[0]} ({role[1]}), up to {slowest:.1f} s{tokens}"
