"""`topicloom replay`: a recorded conversation becomes topics, then is asked about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from langchain_core.runnables import RunnableConfig
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from topicloom.cli._account import render_account, render_next_steps
from topicloom.cli._questions import (
    AskedQuestion,
    QuestionAsker,
    render_brief,
    render_question,
    render_score,
)
from topicloom.cli._views import format_day
from topicloom.cli.console import CliOptions, open_console, print_dim, render_heading, to_one_line
from topicloom.cli.context import (
    CliContext,
    context_in,
    describe_model,
    find_reply_model,
    load_session,
    make_thread_config,
    open_context,
    open_roles,
)
from topicloom.errors import InputError
from topicloom.graph.session import SessionGraph, build_session_graph
from topicloom.graph.stored import Graph, get_session
from topicloom.recordings.conversations import Conversation
from topicloom.recordings.replay import (
    cut_rounds,
    find_place,
    find_sample,
    iso_time,
    load_first_conversation,
    replay_conversation,
)
from topicloom.roles.responder import RESPONDER, RecordedResponder
from topicloom.settings import Settings
from topicloom.state.session import Session
from topicloom.storage.names import check_session_name
from topicloom.storage.sessions import SessionStore

_RECALL = 0.125
"""Share of it that recall may add: there is no model that picks, so more has to be shown."""
_WINDOW = 16_000
"""Main window of a replay: small, so that a short conversation has to be split too."""
_MANY = 24
"""Questions from which each is shown on one line."""
_THROWAWAY = "replay"


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What was asked for."""

    file: Path | None = None
    """The recording; the packaged sample if None."""
    session: str | None = None
    """The session to keep it as."""
    window: int | None = None
    """Main window in tokens."""
    questions: bool = True
    """Whether to ask the recording's questions."""
    limit: int | None = None
    """Messages at most."""


def run_replay(given: CliOptions, options: ReplayOptions) -> None:
    """Replay, ask, and say what became of it.

    Raises:
        NotAConversationError: The file holds no conversation.
        InputError: The session holds another conversation.
        SessionBusyError: The session is in use elsewhere.
        ConfigurationError: The model or the folder cannot be used.
    """
    console, name = open_console(), options.session or _THROWAWAY
    check_session_name(name if options.session is None else options.session)
    conversation = load_first_conversation(options.file or find_sample(), options.limit)
    with _open_context(given, options) as place:
        recorded, builder = _build_graph(place)
        composed = find_reply_model(place.settings) is not None
        _introduce(console, conversation, place.settings)
        with place.storage.lock(name), place.checkpoints() as saver:
            store = SessionStore(place.storage.open(name))
            _check_same(load_session(saver, make_thread_config(name)), store, conversation)
            graph = builder.compile(checkpointer=saver)
            _feed(console, graph, recorded, conversation, make_thread_config(name))
            session = get_session(graph, make_thread_config(name))
            if options.questions and conversation.questions:
                asker = QuestionAsker(builder, saver, store, session)
                _ask(console, asker, conversation, composed=composed)
        console.print(render_account(session, store, console.width))
        console.print(render_next_steps(options.session, composed=composed))


@contextmanager
def _open_context(given: CliOptions, options: ReplayOptions) -> Iterator[CliContext]:
    """The folder of the sessions, or one that is thrown away."""
    place = open_context(given)
    window = options.window or place.settings.window or _WINDOW
    settings = place.settings.model_copy(update={"window": window, "recall_share": _RECALL})
    if options.session is not None:
        yield context_in(place.folder, settings)
        return
    with TemporaryDirectory(prefix="topicloom-") as folder:
        yield context_in(Path(folder), settings.model_copy(update={"fsync": False}))


def _build_graph(place: CliContext) -> tuple[RecordedResponder, SessionGraph]:
    roles = open_roles(place)
    recorded = RecordedResponder(otherwise=roles[RESPONDER])
    builder = build_session_graph(
        settings=place.settings, roles=roles.replace(RESPONDER, recorded), storage=place.storage
    )
    return recorded, builder


def _introduce(console: Console, conversation: Conversation, settings: Settings) -> None:
    days = sorted(iso_time(m.time)[:10] for m in conversation.messages if m.time)
    when = f", {format_day(days[0])} to {format_day(days[-1])}" if days else ""
    count = len(conversation.messages)
    console.print(
        Text.assemble((to_one_line(conversation.id), "bold"), f": {count} messages{when}."),
    )
    console.print(
        "Every message goes in as if it were said now. The main window is small,"
        f" {settings.window:,} tokens: when it fills, older messages move into topics, each"
        " with a window of its own."
    )
    print_dim(console, describe_model(settings))


def _check_same(session: Session | None, store: SessionStore, conversation: Conversation) -> None:
    """Raises InputError if the session began with something else than the recording."""
    if session is None or not session.count:
        return
    first, begun = store.record(session, 1), cut_rounds(conversation)[0].said[0]
    if (first.source, first.text) != (begun.id, begun.text):
        raise InputError(
            f"session {session.id!r} holds another conversation: give --session a new name"
        )


def _feed(
    console: Console,
    graph: Graph,
    recorded: RecordedResponder,
    conversation: Conversation,
    config: RunnableConfig,
) -> None:
    total = sum(map(len, cut_rounds(conversation)))
    progress = Progress(
        SpinnerColumn(style="cyan"),
        TextColumn("replaying"),
        BarColumn(bar_width=None, complete_style="cyan", finished_style="cyan"),
        MofNCompleteColumn(),
        TextColumn("{task.fields[topics]} topics"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    begun = get_session(graph, config)
    with progress:
        task = progress.add_task("", total=total, completed=begun.count, topics=begun.topics)
        for exchange, state in replay_conversation(graph, recorded, conversation, config):
            progress.update(task, advance=len(exchange), topics=state["session"].get("topics", 0))


def _ask(
    console: Console,
    asker: QuestionAsker,
    conversation: Conversation,
    *,
    composed: bool,
) -> None:
    console.print(render_heading("Questions about it, each on a fork of its own"))
    asked: list[AskedQuestion] = []
    for question in conversation.questions:
        with console.status(Text(to_one_line(question.question), style="dim")):
            asked.append(asker.ask(question, find_place(question, conversation)))
        console.print(
            render_question(asked[-1], console.width, composed=composed)
            if len(conversation.questions) <= _MANY
            else render_brief(asked[-1], console.width)
        )
    console.print(render_score(asked))
