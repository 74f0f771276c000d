"""`topicloom demo`: questions on the packaged conversation, and how each of them is answered."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, HumanMessage
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from topicloom import (
    READER,
    RESPONDER,
    Memory,
    Reading,
    Receipt,
    StoredMessage,
    count_budget_tokens,
    open_roles,
)
from topicloom.hosting import Graph, name_thread
from topicloom_app.cli._turn_views import (
    ReadTopic,
    describe_plain_window,
    render_quotes,
    render_readings,
    render_reply,
    select_relevant,
)
from topicloom_app.cli._views import format_day, format_runs
from topicloom_app.cli.chat import TerminalChat
from topicloom_app.cli.console import (
    CliOptions,
    ReplyWriter,
    count_of,
    open_console,
    print_dim,
    print_next,
    strip_control,
)
from topicloom_app.cli.context import CliContext, describe_model, find_reply_model, open_context
from topicloom_app.cli.editor import LineEditor
from topicloom_app.cli.sample import unpack_sample
from topicloom_app.cli.words import say, speaks_chinese
from topicloom_app.recordings.demonstration import (
    RecordedQuestion,
    RecordedReader,
    load_demonstration,
)
from topicloom_app.recordings.replay import RecordedResponder, find_sample

_NAME = find_sample().stem
_WIDEST = 100
"""Columns that are used at most."""
_MARGIN = 4
"""Columns that quotes and bars leave free."""
_FRAME, _STEP, _REST = 0.02, 0.05, 0.5
"""Seconds for a frame, for the reading of a topic, and for the end of a part."""
_SHIFTS = (48, 34, 23, 14, 8, 4, 2, 1, 0)
"""Columns by which a quote is still off its place, a frame each."""


def run_demo(cli: CliOptions) -> None:
    """Show how questions on the packaged conversation are answered; then answer the reader's.

    With a model set, it reads and replies; else readings and replies to these questions are
    recorded. Nothing is kept. Where input or output is no terminal, all of it is printed at once,
    and nothing is asked for.
    """
    console = open_console()
    console.width = min(console.width, _WIDEST)
    asks = console.is_terminal and sys.stdin.isatty()
    stage = Stage(console, time.sleep if asks else lambda _: None)
    shown = load_demonstration("zh" if speaks_chinese() else "en")
    with unpack_sample(open_context(cli), find_sample()) as context:
        _introduce(console, context)
        go_on = _show_questions(stage, context, shown.questions, asks=asks)
        if asks and go_on:
            _answer_reader(console, context, shown.suggestions)
    print_next(console, say("See it in the browser: "), "ui")


@dataclass(frozen=True, slots=True)
class Stage:
    """Prints at a pace that can be followed."""

    console: Console
    sleep: Callable[[float], None]
    """Waits some seconds, or not."""

    def play(self, frames: Iterable[RenderableType]) -> None:
        """Print the last of the frames; at a terminal, show those before it in its place."""
        *before, last = (_indent(frame) for frame in frames)
        with Live(console=self.console, auto_refresh=False, transient=True) as live:
            for frame in before:
                live.update(frame, refresh=True)
                self.sleep(_FRAME)
        self.console.print(last)

    def type(self, text: Text) -> None:
        """Print a text as if it were typed."""
        self.play(text[:end] for end in range(2, len(text) + 2, 2))

    def slide(self, what: RenderableType) -> None:
        """Print something that comes from the right to its place behind a bar."""
        options = self.console.options.update_width(self.console.width - _MARGIN)
        lines = self.console.render_lines(what, options, pad=False)
        self.play(_Shifted(lines, by) for by in _SHIFTS)


@dataclass(frozen=True, slots=True)
class _Shifted:
    """Lines some columns to the right of their place, as far as they are on the screen."""

    lines: Sequence[Sequence[Segment]]
    by: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.lines:
            moved = [Segment("│ ", Style(color="green")), Segment(" " * self.by), *line]
            yield from Segment.adjust_line_length(moved, options.max_width, pad=False)
            yield Segment.line()


def _indent(what: RenderableType) -> Padding:
    return Padding(what, (0, 0, 0, 2), expand=False)


def _introduce(console: Console, context: CliContext) -> None:
    memory = context.open_memory(_NAME)
    messages = memory.history(limit=None)
    text = say(
        "A chat of {messages}, {first} to {last}: about {tokens:,} tokens, in {topics}. The main"
        " window holds {window:,}.",
        messages=count_of(len(messages), "message"),
        first=format_day(messages[0].day),
        last=format_day(messages[-1].day),
        tokens=round(sum(count_budget_tokens(m.text) for m in messages), -3),
        topics=count_of(len(memory.topics()), "topic"),
        window=context.settings.window,
    )
    console.print(Text(text))
    if find_reply_model(context.settings) is None:
        print_dim(
            console,
            "No model is set: what readers and replies say to these questions is recorded. All"
            " else happens now, on this machine.",
        )
    else:
        print_dim(console, describe_model(context.settings))


def _show_questions(
    stage: Stage, context: CliContext, questions: Sequence[RecordedQuestion], *, asks: bool
) -> bool:
    """Ask the questions one after the other; False if the reader wants no more."""
    roles = open_roles(settings=context.settings)
    reader, responder = RecordedReader(), RecordedResponder(otherwise=roles[RESPONDER])
    recorded = find_reply_model(context.settings) is None
    if recorded:
        roles = roles.replace(READER, reader).replace(RESPONDER, responder)
    with context.open_graph(roles) as (graph, *_):
        for number, question in enumerate(questions):
            if number and asks and not _wait(stage.console):
                return False
            reader.expect(question)
            responder.expect(_NAME, AIMessage(question.plain_reply))
            _show_turn(stage, context, graph, question.question, question.reply if recorded else "")
    return True


def _wait(console: Console) -> bool:
    """Wait for Enter; False if the input ends."""
    try:
        console.input(Text.assemble("\n  ", (say("Enter: the next question "), "cyan")))
    except EOFError:
        return False
    return True


def _show_turn(stage: Stage, context: CliContext, graph: Graph, asked: str, cited: str) -> None:
    """Ask a question, and show what is done for it: what is read, what is quoted, the reply.

    Args:
        stage: Where it is shown.
        context: Has the session.
        graph: Answers.
        asked: The question.
        cited: The reply with its citations, if it is known before; "" for the one that comes.
    """
    console = stage.console
    memory = context.open_memory(_NAME)
    said = {m.id: m for m in memory.history(limit=None)}
    console.print()
    stage.type(Text(f"› {asked}", style="bold cyan"))
    read, receipt, reply = _run_turn(stage, memory, graph, asked)
    named = sorted((said[i] for one in read for i in one.named), key=lambda m: m.seq)
    recorded = say(" (recorded)") if cited else ""
    topics = count_of(len(read), "topic")
    _begin_part(console, say("{topics} read in parallel", topics=topics) + recorded)
    bars = render_readings(select_relevant(read), console.width - _MARGIN)
    console.print(_indent(bars))
    _show_prompt(stage, receipt, named, reply)
    _begin_part(console, say("the reply") + recorded)
    stage.type(render_reply(cited or reply))
    if named:
        _begin_part(console, describe_plain_window([*said.values()], receipt.window, named))


def _run_turn(
    stage: Stage, memory: Memory, graph: Graph, asked: str
) -> tuple[list[ReadTopic], Receipt, str]:
    """Run a turn, with a bar for each topic while it is read: readings, receipt and reply."""
    topics = {topic.id: topic for topic in memory.topics()}
    said, read = {"messages": [HumanMessage(asked)]}, list[ReadTopic]()
    done = graph.stream(said, name_thread(_NAME), stream_mode="updates", durability="exit")
    with Live(console=stage.console, transient=True) as live:
        for data in done:
            for value in (data.get("read_topic") or {}).get("readings", ()):
                reading = Reading.model_validate(value)
                if reading.topic not in topics:  # it begins with this turn
                    continue
                read.append(ReadTopic(topics[reading.topic], reading))
                bars = render_readings(read, stage.console.width - _MARGIN)
                live.update(_indent(Group(Text(), bars)))
                stage.sleep(_STEP)
        stage.sleep(_REST)
    (receipt,) = memory.receipts(1)
    (reply,) = memory.history(limit=1)
    return read, receipt, strip_control(reply.text)


def _show_prompt(
    stage: Stage, receipt: Receipt, named: Sequence[StoredMessage], reply: str
) -> None:
    """What readers named slides into the prompt; then what else came in, and what did not."""
    console, width = stage.console, stage.console.width - _MARGIN
    quoted = {i for note in receipt.quoted for i in note.quotes}
    used, window = sum(receipt.sections.values()), receipt.window
    into = say("into the prompt, {used:,} of {window:,} tokens", used=used, window=window)
    nothing = say("no message was named: nothing is quoted")
    _begin_part(console, into if quoted or named else nothing)
    for message, row in zip(named, render_quotes(named, reply, width), strict=True):
        if message.id in quoted:
            stage.slide(row)
    for line in _list_rest([m.id for m in named], quoted, receipt):
        console.print(_indent(Text(line, style="dim")))


def _list_rest(named: Sequence[str], quoted: set[str], receipt: Receipt) -> Iterator[str]:
    """What else is in the prompt and what is not, a line each.

    Args:
        named: Short ids of what readers named.
        quoted: Short ids of what is quoted.
        receipt: That of the turn.
    """
    if there := [i for i in named if i not in quoted and i not in receipt.crowded_out]:
        yield say("already in the prompt: {ids}", ids=format_runs(there))
    if others := quoted.difference(named):
        yield say("and by the index: {ids}", ids=format_runs([*others]))
    if receipt.reading and (kept_out := len(receipt.reading.kept_out)):
        count = count_of(kept_out, "message")
        yield say("kept out by the readers: {count} that the index alone would quote", count=count)


def _begin_part(console: Console, text: str) -> None:
    """Print what a part of a turn is, under an empty line."""
    console.print()
    console.print(_indent(Text(text, style="dim")))


def _answer_reader(console: Console, context: CliContext, suggestions: Sequence[str]) -> None:
    """Take the reader's questions until the input ends."""
    console.print()
    print_dim(console, "Your turn: ask this chat something. From here on nothing is recorded.")
    for suggestion in suggestions:
        console.print(Text(f"  {suggestion}", style="cyan"))
    print_dim(console, "The arrow keys bring these, /help shows the commands, Ctrl-D ends it.")
    editor = LineEditor(console)
    editor.add_history(suggestions[::-1])
    with context.open_graph() as (graph, *_):
        chat = TerminalChat(context, graph, name_thread(_NAME), ReplyWriter(console))
        for line in editor.read_lines():
            if not chat.handle_line(line):
                break
