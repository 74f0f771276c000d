"""`topicloom replay`: a recorded conversation becomes topics, then is asked about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
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

from topicloom import (
    RESPONDER,
    InputError,
    Session,
    SessionStore,
    Settings,
    get_session,
    open_roles,
)
from topicloom.hosting import REMOVED, Graph, name_thread
from topicloom_app.cli._account import render_account
from topicloom_app.cli._questions import (
    AskedQuestion,
    QuestionAsker,
    render_question,
    render_score,
    to_row,
)
from topicloom_app.cli._views import format_day
from topicloom_app.cli.console import (
    CliOptions,
    count_of,
    open_console,
    print_dim,
    print_json,
    print_next,
    render_heading,
    to_one_line,
)
from topicloom_app.cli.context import (
    CliContext,
    describe_model,
    find_reply_model,
    make_context,
    open_context,
)
from topicloom_app.cli.words import say
from topicloom_app.recordings.conversations import Conversation
from topicloom_app.recordings.replay import (
    RecordedResponder,
    cut_rounds,
    find_position,
    find_sample,
    load_first_conversation,
    replay_conversation,
)
from topicloom_app.recordings.times import iso_time
from topicloom_app.session_names import check_session_name

RECALL = 0.125
"""Share of the window that recall may add: no model selects here, so more has to be shown."""
WINDOW = 16_000
"""Main window of a replay: small, so that a short conversation has to be split too."""


def run_replay(
    cli: CliOptions,
    file: Path | None,
    session_name: str | None,
    window: int | None,
    limit: int | None,
    *,
    questions: bool,
    as_json: bool,
) -> None:
    """Replay a recording or the packaged sample, ask its questions, and print an account.

    As JSON: the figures of the session, then a line for each question.

    Raises `InputError` if the session holds another conversation.
    """
    console = open_console(quiet=as_json)
    name = "replay" if session_name is None else session_name
    check_session_name(name)
    conversation = load_first_conversation(file or find_sample(), limit)
    with open_small(open_context(cli), window, keep=session_name is not None) as context:
        roles = open_roles(settings=context.settings)
        recorded = RecordedResponder(otherwise=roles[RESPONDER])
        config = name_thread(name)
        composed = find_reply_model(context.settings) is not None
        _introduce(console, conversation, context.settings)
        if composed or (questions and conversation.questions):
            print_dim(console, describe_model(context.settings))
        with (
            context.storage.lock(name),
            context.open_bare_graph(roles.replace(RESPONDER, recorded)) as (graph, saver),
        ):
            store = SessionStore(context.storage.open(name))
            _check_same(get_session(graph, config), store, conversation)
            feed_recording(console, graph, recorded, conversation, config)
            session = get_session(graph, config)
            memory = context.open_memory(name)
            console.print(render_account(memory, session, store, console.width))
            if as_json:
                counts = {"messages": session.count, "topics": len(memory.topics())}
                print_json([{"session": name, **counts}])
            if questions and conversation.questions:
                asker = QuestionAsker(graph.builder, saver, store, session)
                _ask(console, asker, conversation, composed=composed, as_json=as_json)
        if session_name:
            print_next(console, say("Go on with it: "), f"chat {quote(session_name)}")
        else:
            print_next(console, say("Talk in a session of your own: "), "chat")


@contextmanager
def open_small(
    context: CliContext, window: int | None = None, *, keep: bool = False
) -> Iterator[CliContext]:
    """A context of the same folder, or of a temporary one, whose window is so small that it has
    topics."""
    window = window or context.settings.window or WINDOW
    settings = context.settings.model_copy(update={"window": window, "recall_share": RECALL})
    if keep:
        yield make_context(context.folder, settings)
        return
    with TemporaryDirectory(prefix="topicloom-") as folder:
        yield make_context(Path(folder), settings.model_copy(update={"fsync": False}))


def _introduce(console: Console, conversation: Conversation, settings: Settings) -> None:
    days = sorted(iso_time(m.time)[:10] for m in conversation.messages if m.time)
    when = (
        say(", {first} to {last}", first=format_day(days[0]), last=format_day(days[-1]))
        if days
        else ""
    )
    count = len(conversation.messages)
    name = (to_one_line(conversation.id), "bold")
    console.print(Text.assemble(name, f": {count_of(count, 'message')}{when}."))
    console.print(
        say(
            "Every message goes in as if it were said now. The main window is small,"
            " {window:,} tokens: when it fills, older messages move into topics, each"
            " with a window of its own.",
            window=settings.window,
        )
    )


def _check_same(session: Session, store: SessionStore, conversation: Conversation) -> None:
    """Raise InputError if the session began with something else than the recording."""
    if not session.count:
        return
    first, begun = store.message(session, 1), cut_rounds(conversation)[0].said[0]
    if first.source != begun.id or first.text not in (begun.text, REMOVED):
        raise InputError(
            "session {session!r} holds another conversation: give --session a new name",
            session=session.id,
        )


def feed_recording(
    console: Console,
    graph: Graph,
    recorded: RecordedResponder,
    conversation: Conversation,
    config: RunnableConfig,
) -> None:
    """Replay a recording into a session, with a bar that shows how far it is."""
    total = sum(map(len, cut_rounds(conversation)))
    columns = (
        SpinnerColumn(style="cyan"),
        TextColumn(say("replaying")),
        BarColumn(bar_width=None, complete_style="cyan", finished_style="cyan"),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    begun = get_session(graph, config)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total, completed=begun.count)
        for round_, _ in replay_conversation(graph, recorded, conversation, config):
            progress.update(task, advance=len(round_))


def _ask(
    console: Console,
    asker: QuestionAsker,
    conversation: Conversation,
    *,
    composed: bool,
    as_json: bool,
) -> None:
    console.print(render_heading("Questions about it, each on a fork of its own"))
    asked: list[AskedQuestion] = []
    for question in conversation.questions:
        with console.status(Text(to_one_line(question.question), style="dim")):
            asked.append(asker.ask(question, find_position(question, conversation)))
        if as_json:
            print_json([to_row(asked[-1])])
        console.print(render_question(asked[-1], console.width, composed=composed))
    console.print(render_score(asked))
