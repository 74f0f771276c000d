"""`topicloom eval caching`: what providers' caches would have served of a replay's prompts."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.table import Table

from topicloom.cli.console import open_console, print_dim
from topicloom.context.layout import LayoutName
from topicloom.errors import InputError
from topicloom.recordings.conversations import Conversation, load_conversations
from topicloom.settings import Settings
from topicloom_lab.caching.measure import Prices, SentPrompt, Served, measure
from topicloom_lab.caching.replay import MAIN, record_prompts
from topicloom_lab.caching.rules import RULES
from topicloom_lab.cli.output import counting

_WINDOWS: Mapping[str, str] = {"main": "main window", "topics": "topic windows"}


@dataclass(frozen=True, slots=True)
class CachingOptions:
    """The options of the command."""

    file: Path
    turns: int
    window: int
    topic_window: int
    recall: int | None
    layouts: Sequence[LayoutName]
    seconds: float
    conversation: int
    """Its number in the file, from 1."""


def run_caching(options: CachingOptions, console: Console | None = None) -> None:
    """Replay under each layout, and print what each rule would have served.

    Raises:
        NotAConversationError: If the file holds something else.
        InputError: If the file has no such conversation, or there is no reply in it.
    """
    console = console or open_console()
    conversation = _chosen(options)
    for layout in options.layouts:
        turns = _record(conversation, options, layout, console)
        if not turns:
            raise InputError(f"{options.file}: nobody answers in {conversation.id!r}")
        console.print(_table(conversation, options, layout, turns))
    print_dim(
        console,
        "Cost is that of input tokens, as a share of what they cost without a cache: a read at"
        " a tenth, a write at 1.25 where it is paid for.",
    )


def _chosen(options: CachingOptions) -> Conversation:
    place = options.conversation - 1
    found = next(islice(load_conversations(options.file), place, None), None)
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
            conversation, Path(folder), settings, turns=options.turns, seconds=options.seconds
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
    table = Table(
        title=f"Cached share, {layout}: {conversation.id}, {len(turns)} turns,"
        f" {options.window:,} tokens"
    )
    table.add_column("rule")
    for name in _WINDOWS.values():
        table.add_column(name, justify="right")
        table.add_column("cost", justify="right")
    served: dict[str, Served] = {}
    for rule in RULES:
        cells = list[str]()
        for name in _WINDOWS:
            cache = RULES[rule]()
            chosen = [p for batch in turns for p in batch if _kind(p) == name]
            served = served | measure(chosen, cache, _kind)
            cells += _cells(served.get(name, Served()), cache.prices)
        table.add_row(rule, *cells)
    table.caption = ", ".join(
        f"{_WINDOWS[name]}: {s.prompts:,} prompts of {s.tokens / s.prompts:,.0f} tokens"
        for name, s in served.items()
    )
    return table


def _kind(prompt: SentPrompt) -> str:
    return "main" if prompt.window == MAIN else "topics"


def _cells(served: Served, prices: Prices) -> tuple[str, str]:
    if not served.prompts:
        return "-", "-"
    return f"{served.share:.1%}", f"{prices.relative(served):.2f}"
