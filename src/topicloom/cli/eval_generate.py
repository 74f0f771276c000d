"""`topicloom eval generate` and `caching`: the commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

SOURCES = """
Files: conversations with questions, dialogues with segments, conversations with threads; one JSON
a line, .xz is fine.

Generators, for `generate` and as sources of `run`: sniah (needle, haystack, tokens, depths, form,
message, together, seed), oolong (items, message, conversations, seed), hotpotqa (folder, message,
seed). A specification is NAME:OPTION=VALUE,OPTION=VALUE, such as
sniah:needle=uuid,haystack=prose,tokens=1000000.
"""
"""What there is to measure on, for `topicloom eval --help`."""


def register(app: typer.Typer) -> None:
    """Add the commands to `topicloom eval`, and what can be measured on to its help."""
    app.info.epilog = SOURCES
    app.command("generate")(generate)
    app.command("caching")(caching)


def generate(
    spec: Annotated[
        str, typer.Argument(help="Generator and options: sniah:needle=uuid,tokens=1000000,seed=1.")
    ],
    out: Annotated[Path, typer.Option(help="Where the conversations go, one JSON a line.")],
) -> None:
    """Make conversations up, with questions and evidence. The same options make the same."""
    from topicloom.cli.generating import run_generate

    run_generate(spec, out)


def caching(
    file: Annotated[Path, typer.Argument(help="Conversations, one JSON a line; .xz is fine.")],
    turns: Annotated[int, typer.Option(min=1, help="Answered turns to replay.")] = 200,
    window: Annotated[
        int, typer.Option(min=1_000, help="Main window in tokens during the replay.")
    ] = 128_000,
    topic_window: Annotated[int, typer.Option(min=1_000, help="A reader's window.")] = 64_000,
    recall: Annotated[
        int | None, typer.Option(min=1, help="Tokens that a turn may recall; else a share.")
    ] = None,
    layout: Annotated[
        Literal["ledger", "spec"] | None, typer.Option(help="Only this layout; else both.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0, help="From one turn to the next: caches forget.")
    ] = 60.0,
    conversation: Annotated[int, typer.Option(min=1, help="Which of the file.")] = 1,
) -> None:
    """Replay a conversation, and see what providers' caches would have served of its prompts.

    The embedded roles decide; the prompts are those of the chat-model roles. Topic windows and the
    main window are counted apart, as two models would be.
    """
    from topicloom.cli.caching import CachingOptions, run_caching

    layouts: tuple[Literal["ledger", "spec"], ...] = (layout,) if layout else ("ledger", "spec")
    run_caching(
        CachingOptions(file, turns, window, topic_window, recall, layouts, seconds, conversation)
    )
