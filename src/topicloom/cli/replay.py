"""`topicloom replay`: a recorded conversation becomes topics, then is asked about.

Then comes an account of it: exchanges that a quote made possible, figures, topics.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import log
from pathlib import Path
from shlex import quote
from shutil import which
from tempfile import TemporaryDirectory

from langchain_core.runnables import RunnableConfig
from rich.console import Console, Group, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from topicloom.cli._questions import (
    AskedQuestion,
    QuestionAsker,
    render_brief,
    render_question,
    render_score,
    to_row,
)
from topicloom.cli._views import extract_terms, find_excerpt, format_day, render_topics, shorten
from topicloom.cli.console import (
    CliOptions,
    count_of,
    open_console,
    print_dim,
    print_json,
    render_heading,
    to_one_line,
)
from topicloom.cli.context import (
    CliContext,
    describe_model,
    find_reply_model,
    make_context,
    open_context,
    open_roles,
)
from topicloom.cli.words import say
from topicloom.context.tokens import choose_counter
from topicloom.errors import InputError
from topicloom.memory.memory import Memory
from topicloom.memory.stored import Graph, get_session
from topicloom.nodes.runs import name_thread
from topicloom.recordings.conversations import Conversation
from topicloom.recordings.replay import (
    cut_rounds,
    find_position,
    find_sample,
    load_first_conversation,
    replay_conversation,
)
from topicloom.recordings.times import iso_time
from topicloom.roles.responder import RESPONDER, RecordedResponder
from topicloom.settings import Settings
from topicloom.state.session import Session
from topicloom.state.stored_message import REMOVED, StoredMessage
from topicloom.storage.names import check_session_name
from topicloom.storage.sessions import SessionStore

RECALL = 0.125
"""Share of the window that recall may add: no model selects here, so more has to be shown."""
WINDOW = 16_000
"""Main window of a replay: small, so that a short conversation has to be split too."""
_MANY = 24
"""Questions from which each is shown on one line, though a model replied."""


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
        roles = open_roles(context)
        recorded = RecordedResponder(otherwise=roles[RESPONDER])
        config = name_thread(name)
        composed = find_reply_model(context.settings) is not None
        _introduce(console, conversation, context.settings)
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
                counts = {"messages": session.count, "topics": session.topics}
                print_json([{"session": name, **counts}])
            if questions and conversation.questions:
                asker = QuestionAsker(graph.builder, saver, store, session)
                _ask(console, asker, conversation, composed=composed, as_json=as_json)
        console.print(render_next_steps(session_name, composed=composed))


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
    when = say(f", {format_day(days[0])} to {format_day(days[-1])}") if days else ""
    count = len(conversation.messages)
    name = (to_one_line(conversation.id), "bold")
    console.print(Text.assemble(name, f": {count_of(count, 'message')}{when}."))
    console.print(
        say(
            "Every message goes in as if it were said now. The main window is small,"
            f" {settings.window:,} tokens: when it fills, older messages move into topics, each"
            " with a window of its own."
        )
    )
    print_dim(console, describe_model(settings))


def _check_same(session: Session, store: SessionStore, conversation: Conversation) -> None:
    """Raise InputError if the session began with something else than the recording."""
    if not session.count:
        return
    first, begun = store.message(session, 1), cut_rounds(conversation)[0].said[0]
    if first.source != begun.id or first.text not in (begun.text, REMOVED):
        raise InputError(
            f"session {session.id!r} holds another conversation: give --session a new name"
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
        TextColumn(say("{task.fields[topics]} topics")),
        TimeElapsedColumn(),
    )
    begun = get_session(graph, config)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total, completed=begun.count, topics=begun.topics)
        for round_, state in replay_conversation(graph, recorded, conversation, config):
            progress.update(task, advance=len(round_), topics=state["session"].get("topics", 0))


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
        console.print(
            render_question(asked[-1], console.width)
            if composed and len(conversation.questions) <= _MANY
            else render_brief(asked[-1], console.width)
        )
    console.print(render_score(asked))


@dataclass(frozen=True, slots=True)
class Exchange:
    """A turn whose reply rests on a message that was quoted for it."""

    asked: StoredMessage
    quote: StoredMessage
    topic: str
    """Name of the topic that it was quoted from."""
    reply: StoredMessage


_TOPICS = 14
_EXCHANGES, _LINES = 3, 3
"""Exchanges that are shown, and lines of each message."""
_LONGEST = 600
"""Characters of a message that an exchange is chosen by: of pasted pages everything is shared."""


class TermRarity:
    """Scores the terms that two messages of a conversation share; rare ones count more."""

    def __init__(self, messages: Sequence[StoredMessage]) -> None:
        """Count the messages of a conversation that each term is in."""
        self._size = len(messages)
        self._counts = Counter(term for m in messages for term in set(extract_terms(m.text)))

    def score_shared(self, text: str, other: str, without: str = "") -> float:
        """Sum of the rarities of the terms that both have, and a third text has not."""
        both = set(extract_terms(text)).intersection(extract_terms(other))
        both.difference_update(extract_terms(without))
        return sum(log((1 + self._size) / (1 + self._counts[term])) for term in sorted(both))


def select_exchanges(session: Session, store: SessionStore) -> list[Exchange]:
    """The exchanges whose replies say most that stands in a quote and not in what was asked.

    Each topic, each quote and each turn stands there once; they are in their order.
    """
    messages = {m.id: m for m in store.messages(session)}
    rarity = TermRarity(list(messages.values()))
    rated: list[tuple[float, Exchange]] = []
    for receipt in store.receipts(session):
        asked = messages.get(receipt.user)
        reply = asked and messages.get(f"m{asked.seq + 1}")
        if not (asked and reply and reply.role == "assistant"):
            continue
        recalled = ((messages.get(i), note.name) for note in receipt.quoted for i in note.quotes)
        for said, name in recalled:
            if said and said.role == "user" and max(len(said.text), len(asked.text)) < _LONGEST:
                score = rarity.score_shared(said.text, reply.text, without=asked.text)
                rated.append((score, Exchange(asked, said, name, reply)))
    rated.sort(key=lambda pair: -pair[0])
    chosen: list[Exchange] = []
    for _, found in rated:
        if not any(_is_alike(found, other) for other in chosen):
            chosen.append(found)
    return sorted(chosen[:_EXCHANGES], key=lambda e: e.asked.seq)


def _is_alike(one: Exchange, other: Exchange) -> bool:
    return one.topic == other.topic or one.quote == other.quote or one.asked == other.asked


def render_account(
    memory: Memory, session: Session, store: SessionStore, width: int
) -> RenderableType:
    """The account of a conversation: exchanges that a quote made possible, figures, topics."""
    parts: list[RenderableType] = []
    if exchanges := select_exchanges(session, store):
        parts.append(render_heading("What came back when it was needed"))
        parts += (_render_exchange(e, width) for e in exchanges)
    parts.append(render_heading("What became of the conversation"))
    parts += (_render_figures(session, store), Text())
    parts.append(render_topics(memory, width, most=_TOPICS))
    return Group(*parts)


def _render_exchange(found: Exchange, width: int) -> RenderableType:
    """What was asked, what was quoted for it and what was replied, wrapped."""
    asked, quote, reply = found.asked, found.quote, found.reply
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, justify="right", width=9)
    table.add_column(overflow="fold")
    room = max(20, width - 11) * _LINES - 8  # lines that break between words are not full
    where = say(f"{quote.id}, {format_day(quote.day)}, from {to_one_line(found.topic)}: ")
    rest = find_excerpt(quote.text, reply.text, room - Text(where).cell_len)
    for label, style, text in (
        (asked.id, "bold cyan", Text(shorten(asked.text, room))),
        (say("recalled"), "green", Text.assemble((where, "green"), f"“{rest}”")),
        (reply.id, "bold", Text(find_excerpt(reply.text, quote.text, room))),
    ):
        table.add_row(Text(label, style=style), text)
    return Group(Text(format_day(asked.day), style="dim"), table)


def render_next_steps(kept: str | None, *, composed: bool) -> RenderableType:
    """Commands to try after a replay that was kept as this session, if it was kept."""
    program = sys.argv[0] if Path(sys.argv[0]).name == "topicloom" else "topicloom"
    program = "topicloom" if which("topicloom") == program else quote(os.path.relpath(program))
    if kept is None:
        steps = [
            ("talk in a session of your own", f"{program} chat"),
            ("keep this one, and go on with it", f"{program} replay --session lake"),
        ]
    else:
        steps = [
            ("go on with this conversation", f"{program} chat {quote(kept)}"),
            ("read a topic word for word", f"{program} transcript {quote(kept)} --topic t1"),
        ]
    if not composed:
        model = "export TOPICLOOM_MODEL=openai:gpt-5-mini OPENAI_API_KEY=..."
        steps.append(("have real replies", model))
    lines = [
        Text.assemble((f"{say(what)}:\n", "dim"), (f"  {command}", "cyan"))
        for what, command in steps
    ]
    return Group(render_heading("Next"), *lines)


def _render_figures(session: Session, store: SessionStore) -> Text:
    if not session.count:
        return Text(say("Nothing was said."))
    receipts = store.receipts(session)
    splits = sum(bool(r.split) for r in receipts)
    largest = max((sum(r.sections.values()) for r in receipts), default=0)
    first, last = store.message(session, 1), store.message(session, session.count)
    counter = choose_counter("")
    tokens = round(sum(counter.message(m.message) for m in store.messages(session)), -3)
    return Text.assemble(
        (count_of(session.count, "message"), "bold"),
        say(f", {format_day(first.day)} to {format_day(last.day)}, went into "),
        (count_of(len(store.topic_table(session)), "topic"), "bold"),
        say(
            f" in {count_of(splits, 'split')}; the newest {session.count - session.tail + 1} are in"
            f" no topic yet. All of it is about {tokens:,} tokens; no prompt was"
            f" larger than {largest:,}. Every original is still there, word for word."
        ),
    )
