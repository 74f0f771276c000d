"""`topicloom import` and `export`: conversations of other chats into sessions, and sessions out."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from topicloom.cli._pages import ExportKind, write_page
from topicloom.cli.console import (
    CliOptions,
    count_of,
    open_console,
    print_dim,
    print_json,
    print_line,
    to_one_line,
)
from topicloom.cli.context import describe_model, open_context
from topicloom.cli.words import say
from topicloom.errors import InputError
from topicloom.graph.stored import Graph, open_session
from topicloom.nodes.runs import name_thread
from topicloom.recordings.exports import (
    ExportedConversation,
    ExportFormat,
    read_export,
    sort_by_time,
)
from topicloom.recordings.imports import record_messages, select_new
from topicloom.storage.names import check_session_name, make_session_name


def run_import(
    cli: CliOptions,
    kind: ExportFormat,
    file: Path,
    session: str | None,
    *,
    each: bool,
    as_json: bool,
) -> None:
    """Record the conversations of an export, those first that came first, and say what was left.

    What a session has already it does not take in again: an import that was ended goes on.
    Raises `InputError` unless one of `session` and `each` says where to.
    """
    if (session is None) != each:
        raise InputError("say where to: --session NAME for all, or --each for a session of each")
    if session is not None:
        check_session_name(session)
    context, console = open_context(cli), open_console(quiet=as_json)
    conversations = sort_by_time(read_export(file, kind))
    print_dim(console, describe_model(context.settings))
    recorded, names = 0, list[str]()
    columns = (
        TextColumn(say("importing")),
        BarColumn(bar_width=None, complete_style="cyan", finished_style="cyan"),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with (
        context.open_graph() as (graph, *_),
        Progress(*columns, console=console, transient=True) as progress,
    ):
        progress.add_task("", total=sum(len(c.messages) for c in conversations))
        for name, parts in _group(conversations, kind, session):
            names.append(name)
            with context.storage.lock(name):
                for count in _record(graph, name, parts, progress):
                    recorded += count
    done = _summarize(conversations, recorded)
    _report(console, done, len(names) if each else session or "")
    if as_json:
        print_json([done | {"sessions": names}])


def _group(
    conversations: Sequence[ExportedConversation], kind: ExportFormat, session: str | None
) -> Iterator[tuple[str, list[ExportedConversation]]]:
    """The sessions, each with what goes into it; a conversation without messages makes none."""
    said = [c for c in conversations if c.messages]
    if session is not None:
        yield session, said
        return
    for conversation in said:
        yield make_session_name(f"{kind}-{conversation.id}"), [conversation]


def _record(
    graph: Graph,
    name: str,
    conversations: Sequence[ExportedConversation],
    progress: Progress,
) -> Iterator[int]:
    (task,), config = progress.task_ids, name_thread(name)
    session, store = open_session(graph, config)
    fresh = select_new(conversations, store, session)
    progress.advance(task, sum(len(c.messages) for c in conversations) - len(fresh))
    for count in record_messages(graph, fresh, config):
        progress.advance(task, count)
        yield count


def _summarize(conversations: Sequence[ExportedConversation], recorded: int) -> dict[str, Any]:
    """What was taken in, and what was not, and why."""
    skipped: Counter[str] = sum((c.skipped for c in conversations), Counter())
    return {
        "conversations": len(conversations),
        "recorded": recorded,
        "there_already": sum(len(c.messages) for c in conversations) - recorded,
        "left_out": {reason: n for reason, n in skipped.most_common() if n},
    }


def _report(console: Console, done: Mapping[str, Any], where: int | str) -> None:
    to = say(f"session {where}") if isinstance(where, str) else count_of(where, "session")
    lines = [
        f"{count_of(done['conversations'], 'conversation')}: "
        f"{count_of(done['recorded'], 'message')} recorded in {to}"
    ]
    lines += [f"{done['there_already']:,} were there already"] if done["there_already"] else []
    lines += [f"left out: {say(reason)} ({n:,})" for reason, n in done["left_out"].items()]
    for line in lines:
        print_line(console, line)


def run_export(
    cli: CliOptions, name: str, kind: ExportKind, out: Path | None, *, hide: bool
) -> None:
    """Write what was said in a session into a file, or print it; to `hide` it, in other letters."""
    messages = open_context(cli).open_memory(name).history(limit=None)
    text = write_page(name, messages, hide, kind)
    if out is None:
        sys.stdout.write(text)
        return
    try:
        # Its owner's alone, as what it is made of; a file that is there keeps its mode.
        with open(out, "w", encoding="utf-8", opener=partial(os.open, mode=0o600)) as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error}") from error
    print_dim(open_console(), f"{count_of(len(messages), 'message')}: {to_one_line(str(out))}")
