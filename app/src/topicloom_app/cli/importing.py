"""`topicloom import`: conversations of other chats become sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

from langchain_core.runnables import RunnableConfig
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from topicloom import InputError, PersonMemory, Session, SessionStore, open_session
from topicloom.hosting import Graph, find_newest, find_zone, name_thread
from topicloom_app.cli.console import (
    CliOptions,
    count_of,
    open_console,
    print_dim,
    print_json,
    print_line,
)
from topicloom_app.cli.context import CliContext, describe_model, find_reply_model, open_context
from topicloom_app.cli.words import say
from topicloom_app.recordings.exported import ExportedConversation
from topicloom_app.recordings.exports import read_exports
from topicloom_app.recordings.formats.known import FORMATS
from topicloom_app.recordings.imports import record_messages, select_new
from topicloom_app.recordings.session_names import SessionNames
from topicloom_app.recordings.spool import ChatPiece, ImportSpool, ImportSummary
from topicloom_app.session_names import check_session_name, make_titled_name


def run_import(
    cli: CliOptions,
    named: Sequence[str],
    session: str | None,
    *,
    each: bool,
    branches: bool,
    dry_run: bool,
    timezone: str,
    day_first: bool | None,
    as_json: bool,
    user: str = "",
    scope: str = "",
    me: Sequence[str] = (),
) -> None:
    """Record the conversations of exports in the order of time, and say what was left out.

    Messages that a session has already are skipped, so that an interrupted import can be continued.

    Args:
        cli: Options of every command.
        named: The files, folders and archives; before them may stand the format.
        session: The session for all of it; None for the one named after the first file.
        each: True for a session of each conversation.
        branches: True to take in branches that are not shown any more, too.
        dry_run: True to only say what would be recorded.
        timezone: Name of the zone whose days and hours messages have; "" for where the user is.
        day_first: Whether the day comes before the month between slashes; None to find it out.
        as_json: True to print JSON.
        user: The user whose the sessions are to be; "" for nobody's.
        scope: The scope of that user.
        me: The names that the user has in conversations of several people.

    Raises:
        InputError: Both `session` and `each` say where to, or nothing can be imported.
    """
    kind, files = _split_format(named)
    session = _choose_session(session, files[0], each=each)
    context, console = open_context(cli), open_console(quiet=as_json)
    if user and not timezone:
        with context.open_graph() as (graph, *_):
            timezone = PersonMemory(graph, user).timezone()
    named_zone = timezone or context.settings.timezone
    zone = find_zone(named_zone) if named_zone else None
    with ImportSpool(zone, me) as spool, _show_progress(console) as progress:
        found_in = read_exports(files, branches=branches, zone=zone, day_first=day_first)
        _read_all(spool, found_in, progress)
        found = spool.summary
        progress.add_task(say("importing"), total=found.messages)
        targets = _find_targets(context, spool, session)
        if dry_run:
            recorded = sum(_count_new(context, *target, progress) for target in targets)
        elif found.messages:
            if find_reply_model(context.settings):  # without one, importing needs none
                print_dim(console, describe_model(context.settings))
            recorded = _record_all(context, targets, progress, user, scope)
        else:
            recorded = 0
    done = found.describe(recorded) | {"sessions": list(dict.fromkeys(n for n, _ in targets))}
    if as_json:
        print_json([done])
    _report(console, done, session, kind, dry_run=dry_run)
    if not found.messages:
        raise InputError(_explain_nothing(found))


def _choose_session(session: str | None, file: Path, *, each: bool) -> str | None:
    """The session that all messages go into; None if each conversation has its own."""
    if session is None:
        named = Path(file.resolve().name.removesuffix(".xz").removesuffix(".gz")).stem
        name = make_titled_name(named)
        if not (name or each):
            raise InputError(
                "{name!r} cannot name a session: say --session NAME, or --each", name=named
            )
        return None if each else name
    if each:
        raise InputError(
            "--session NAME puts all conversations into one session, --each makes a session for"
            " each conversation: give one of them"
        )
    return check_session_name(session)


def _read_all(
    spool: ImportSpool, conversations: Iterable[ExportedConversation], progress: Progress
) -> None:
    """Put conversations into a spool."""
    task = progress.add_task(say("reading"), total=None)
    for conversation in conversations:
        spool.add(conversation)
        progress.update(task, completed=spool.summary.messages)
    progress.update(task, visible=False)


def _split_format(named: Sequence[str]) -> tuple[str | None, list[Path]]:
    """The format, if the first of the words names one, and the files."""
    first, *others = named
    if first in FORMATS and (others or not Path(first).exists()):
        if not others:
            raise InputError("name the export too: topicloom import {given} FILE", given=first)
        return first, list(map(Path, others))
    return None, list(map(Path, named))


def _find_targets(
    context: CliContext, spool: ImportSpool, session: str | None
) -> list[tuple[str, Iterator[ChatPiece]]]:
    """The sessions, each with what goes into it."""
    if session is not None:
        return [(session, spool.pieces())]
    chats = spool.chats()
    names = SessionNames(context.storage, chats)
    return [(names.choose(chat), spool.pieces(chat)) for chat in chats]


def _record_all(
    context: CliContext,
    targets: Sequence[tuple[str, Iterator[ChatPiece]]],
    progress: Progress,
    user: str,
    scope: str,
) -> int:
    recorded = 0
    with context.open_graph() as (graph, *_):
        for name, pieces in targets:
            with context.storage.lock(name):
                recorded += _record(graph, name_thread(name, user, scope), pieces, progress)
    return recorded


def _record(
    graph: Graph, config: RunnableConfig, pieces: Iterator[ChatPiece], progress: Progress
) -> int:
    session, store = open_session(graph, config)
    fresh = select_new(_count(pieces, progress), store, session)
    return sum(record_messages(graph, fresh, config))


def _count_new(
    context: CliContext, name: str, pieces: Iterator[ChatPiece], progress: Progress
) -> int:
    """The number of messages that a session does not have; nothing is written."""
    session, store = Session(id=name), SessionStore(context.storage.open(name))
    if name in context.storage.sessions():
        session = find_newest(store, name)
    return sum(1 for _ in select_new(_count(pieces, progress), store, session))


def _count(pieces: Iterator[ChatPiece], progress: Progress) -> Iterator[ChatPiece]:
    """The same pieces, counted as they are taken."""
    for piece in pieces:
        yield piece
        progress.advance(progress.task_ids[-1], len(piece.messages))


@contextmanager
def _show_progress(console: Console) -> Iterator[Progress]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None, complete_style="cyan", finished_style="cyan"),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield progress


def _report(
    console: Console,
    done: Mapping[str, Any],
    session: str | None,
    kind: str | None,
    *,
    dry_run: bool,
) -> None:
    names = done["sessions"]
    to = (
        say("session {session}", session=session)
        if session is not None
        else count_of(len(names), "session")
    )
    heads = count_of(done["conversations"], "conversation"), count_of(done["recorded"], "message")
    if dry_run:
        template = "{conversations}: {messages} would be recorded in {sessions}"
    else:
        template = "{conversations}: {messages} recorded in {sessions}"
    lines = [say(template, conversations=heads[0], messages=heads[1], sessions=to)]
    if set(done["formats"]) - {kind}:
        read = ", ".join(f"{name} ({n:,})" for name, n in done["formats"].items())
        lines.append(say("read as {formats}, by the content", formats=read))
    if done["first"]:
        first, last = done["first"][:10], done["last"][:10]
        lines.append(say("from {first} to {last}", first=first, last=last))
    if dry_run and done["names"]:
        more = "" if done["conversations"] <= len(done["names"]) else ", …"
        lines.append(say("titles: {titles}{more}", titles=", ".join(done["names"]), more=more))
    if n := done["there_already"]:
        lines.append(say("{count:,} were there already", count=n))
    lines += [
        say("left out: {reason} ({count:,})", reason=say(reason), count=n)
        for reason, n in done["left_out"].items()
    ]
    if n := done["without_user"]:
        nobody = (
            "conversations of several people in which nobody is known to be you: {count:,}; say who"
            " you are with --me NAME, or nothing in them is learnt about you"
        )
        lines.append(say(nobody, count=n))
    if n := done["dated_by_neighbours"]:
        dated = "without a time of their own, dated as the message before them: {count:,}"
        lines.append(say(dated, count=n))
    if n := done["dated_today"]:
        lines.append(say("without any time, dated today: {count:,}", count=n))
    lines += [
        say(
            "not understood: {what} ({count:,}); the first: {example}",
            what=say(row["what"]),
            count=row["count"],
            example=row["example"],
        )
        for row in done["not_understood"]
    ]
    for line in lines:
        print_line(console, line)
    if session is not None and done["recorded"] and not dry_run:
        print_dim(console, "to ask about it: topicloom chat {session}", session=quote(session))


def _explain_nothing(found: ImportSummary) -> str:
    known = ", ".join(FORMATS)
    for what, example in found.unread.examples.items():
        return say(
            "nothing was imported: {what}: {example}. Formats that are known: {known}",
            what=say(what),
            example=example,
            known=known,
        )
    return say(
        "nothing was imported: there is no message with a text. Formats that are known: {known}",
        known=known,
    )
