"""`topicloom eval caching`: what caches would have served of a replay's prompts, or do serve."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from topicloom import InputError, Settings
from topicloom.lab import LayoutName
from topicloom_app.cli.console import print_dim
from topicloom_lab.caching.measure import RULES, Prices, SentPrompt, Served, measure
from topicloom_lab.caching.replay import MAIN, record_prompts
from topicloom_lab.cli.output import counting, make_table, open_figures
from topicloom_lab.comparison.config import load_source
from topicloom_lab.opened import ModelOptions, OpenedModel, Row, Rows

_WINDOWS: Mapping[str, str] = {"main": "main window", "topics": "topic windows"}

Turns = Sequence[Sequence[SentPrompt]]
"""The prompts of each turn."""


def run_caching(
    file: str,
    number: int,
    turns: int,
    seconds: float,
    settings: Settings,
    layouts: Sequence[LayoutName],
    server: ModelOptions | None,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Replay a conversation under each layout, and print what each rule would have served.

    The arguments are the options of the command.

    Raises:
        NotAConversationError: If the file holds something else.
        InputError: If the file has no such conversation, or there is no reply in it.
    """
    console = open_figures(as_json=as_json)
    conversation = next(islice(load_source(file), number - 1, None), None)
    if conversation is None:
        raise InputError("{file} has no conversation {number}", file=file, number=number)
    for layout in layouts:
        recorded = list[list[SentPrompt]]()
        given = settings.model_copy(update={"layout": layout})
        with (
            tempfile.TemporaryDirectory() as folder,
            counting(console, f"turns, {layout}", turns) as progress,
        ):
            for prompts in record_prompts(
                conversation, Path(folder), given, turns=turns, seconds=seconds
            ):
                recorded.append(prompts)
                progress(len(recorded))
        if not recorded:
            raise InputError(
                "{file}: nobody answers in {conversation!r}",
                file=file,
                conversation=conversation.id,
            )
        table = _table(conversation.id, given, recorded)
        if server is not None:
            windows = settings.model_dump(include={"window", "topic_window"})
            rows = Rows(out, {"model": server.name, "layout": layout} | windows)
            table.add_row(
                "the server", *_send(conversation.id, layout, recorded, server, rows, console)
            )
        console.print(table)
    print_dim(
        console,
        "Cost is that of input tokens, as a share of what they cost without a cache: a read at"
        " a tenth, a write at 1.25 where it is paid for. Of a server: how many tokens of a prompt"
        " it had to evaluate, in what time.",
    )


def _table(conversation: str, settings: Settings, turns: Turns) -> Table:
    served: dict[str, Served] = {}
    lines: list[list[str]] = []
    for rule in RULES:
        lines.append([rule])
        for name in _WINDOWS:
            cache = RULES[rule]()
            chosen = [p for batch in turns for p in batch if _kind(p) == name]
            served = served | measure(chosen, cache, _kind)
            lines[-1] += _cells(served.get(name, Served()), cache.prices)
    title = f"Cached share, {settings.layout}: {conversation}"
    return make_table(
        f"{title}, {len(turns)} turns, {settings.window:,} tokens",
        ("rule", *(head for name in _WINDOWS.values() for head in (name, "cost"))),
        lines,
        ", ".join(
            f"{_WINDOWS[name]}: {s.prompts:,} prompts of {s.tokens / s.prompts:,.0f} tokens"
            for name, s in served.items()
        ),
    )


def _send(
    conversation: str,
    layout: LayoutName,
    turns: Turns,
    server: ModelOptions,
    rows: Rows,
    console: Console,
) -> Iterator[str]:
    """Send the prompts in their order; a line of the table, and what was evaluated."""
    opened = server.open()
    sent = {
        f"{conversation} {turn}.{number} {prompt.window}": partial(_sent, prompt, opened)
        for turn, batch in enumerate(turns, start=1)
        for number, prompt in enumerate(batch)
    }
    found = rows.complete(list(sent), sent.values(), console, f"prompts, {layout}")
    for name in _WINDOWS:
        calls = [row["calls"][0] for row in found if row["kind"] == name and not row["failure"]]
        if not calls:
            yield from ("-", "-")
            continue
        read, cached, seconds = (
            sum(c[key] for c in calls) for key in ("read", "cached", "seconds")
        )
        yield f"{cached / read:.1%}"
        yield f"{(read - cached) / len(calls):,.0f} in {seconds / len(calls):.1f} s"


def _sent(prompt: SentPrompt, opened: OpenedModel) -> Row:
    """Send a prompt; the server's counts, or why it refused."""
    given: dict[str, Any] = {"tools": list(prompt.tools)} if prompt.tools else {}
    _, row = opened.attempt(lambda model: model.invoke(prompt.messages, **given))
    for call in row["calls"]:
        del call["prompt"]
    return {"kind": _kind(prompt)} | row


def _kind(prompt: SentPrompt) -> str:
    return "main" if prompt.window == MAIN else "topics"


def _cells(served: Served, prices: Prices) -> tuple[str, str]:
    if not served.prompts:
        return "-", "-"
    return f"{served.share:.1%}", f"{prices.relative(served):.2f}"
