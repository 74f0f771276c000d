"""`topicloom eval caching`: what caches would have served of a replay's prompts, or do serve."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from topicloom.cli.console import print_dim
from topicloom.context.layout import LayoutName
from topicloom.errors import InputError
from topicloom.recordings.conversations import Conversation
from topicloom.settings import Settings
from topicloom_lab.caching.measure import Prices, SentPrompt, Served, measure
from topicloom_lab.caching.replay import MAIN, record_prompts
from topicloom_lab.caching.rules import RULES
from topicloom_lab.cli.output import counting, make_table
from topicloom_lab.comparison.config import load_source
from topicloom_lab.opened import ModelOptions, OpenedModel, Row, Rows

_WINDOWS: Mapping[str, str] = {"main": "main window", "topics": "topic windows"}


@dataclass(frozen=True, slots=True)
class CachingOptions:
    """The options of the command."""

    file: str
    """What `load_source` reads."""
    turns: int
    window: int
    topic_window: int
    recall: int | None
    layouts: Sequence[LayoutName]
    seconds: float
    conversation: int
    """Its number in the file, from 1."""
    server: ModelOptions | None = None
    """A server that is sent the prompts, for an answer of one token."""
    out: Path | None = None
    """Where its counts go."""


def run_caching(options: CachingOptions, console: Console) -> None:
    """Replay under each layout, and print what each rule would have served.

    Raises:
        NotAConversationError: If the file holds something else.
        InputError: If the file has no such conversation, or there is no reply in it.
    """
    conversation = _chosen(options)
    for layout in options.layouts:
        turns = _record(conversation, options, layout, console)
        if not turns:
            raise InputError(f"{options.file}: nobody answers in {conversation.id!r}")
        table = _table(conversation, options, layout, turns)
        if options.server is not None:
            table.add_row("the server", *_send(conversation, options, layout, turns, console))
        console.print(table)
    print_dim(
        console,
        "Cost is that of input tokens, as a share of what they cost without a cache: a read at"
        " a tenth, a write at 1.25 where it is paid for. Of a server: how many tokens of a prompt"
        " it had to evaluate, in what time.",
    )


def _chosen(options: CachingOptions) -> Conversation:
    place = options.conversation - 1
    found = next(islice(load_source(options.file), place, None), None)
    if found is None:
        raise InputError(f"{options.file} has no conversation {options.conversation}")
    return found


def _record(
    conversation: Conversation, options: CachingOptions, layout: LayoutName, console: Console
) -> list[list[SentPrompt]]:
    settings = Settings(
        window=options.window,
        topic_window=options.topic_window,
        recall_tokens=options.recall,
        layout=layout,
    )
    turns = list[list[SentPrompt]]()
    with (
        tempfile.TemporaryDirectory() as folder,
        counting(console, f"turns, {layout}", options.turns) as progress,
    ):
        for prompts in record_prompts(
            conversation,
            Path(folder),
            settings,
            turns=options.turns,
            seconds=options.seconds,
        ):
            turns.append(prompts)
            progress(len(turns))
    return turns


def _table(
    conversation: Conversation,
    options: CachingOptions,
    layout: LayoutName,
    turns: Sequence[Sequence[SentPrompt]],
) -> Table:
    served: dict[str, Served] = {}
    lines: list[list[str]] = []
    for rule in RULES:
        lines.append([rule])
        for name in _WINDOWS:
            cache = RULES[rule]()
            chosen = [p for batch in turns for p in batch if _kind(p) == name]
            served = served | measure(chosen, cache, _kind)
            lines[-1] += _cells(served.get(name, Served()), cache.prices)
    return make_table(
        f"Cached share, {layout}: {conversation.id}, {len(turns)} turns, {options.window:,} tokens",
        ("rule", *(head for name in _WINDOWS.values() for head in (name, "cost"))),
        lines,
        ", ".join(
            f"{_WINDOWS[name]}: {s.prompts:,} prompts of {s.tokens / s.prompts:,.0f} tokens"
            for name, s in served.items()
        ),
    )


def _send(
    conversation: Conversation,
    options: CachingOptions,
    layout: LayoutName,
    turns: Sequence[Sequence[SentPrompt]],
    console: Console,
) -> Iterator[str]:
    """Send the prompts in their order; a line of the table, and what was evaluated."""
    assert options.server is not None
    run = {"model": options.server.name, "layout": layout, "window": options.window}
    rows = Rows(options.out, run | {"topic_window": options.topic_window})
    opened = options.server.open()
    sent = {
        f"{conversation.id} {turn}.{number} {prompt.window}": partial(_sent, prompt, opened)
        for turn, batch in enumerate(turns, start=1)
        for number, prompt in enumerate(batch)
    }
    found = rows.complete(list(sent), sent.values(), console, f"prompts, {layout}")
    for name in _WINDOWS:
        calls = [row["calls"][0] for row in found if row["kind"] == name and not row["failure"]]
        read, cached, seconds = (
            sum(c[key] for c in calls) for key in ("read", "cached", "seconds")
        )
        yield f"{cached / read:.1%}" if calls else "-"
        yield (
            f"{(read - cached) / len(calls):,.0f} in {seconds / len(calls):.1f} s" if calls else "-"
        )


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
