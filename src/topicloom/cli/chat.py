"""`topicloom chat`: a conversation at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from rich.console import Console
from rich.text import Text

from topicloom.cli._excerpts import count_quotes, shorten
from topicloom.cli._views import format_message_day, print_messages, render_receipt, render_topics
from topicloom.cli.console import CliOptions, open_console, print_dim, strip_control, to_one_line
from topicloom.cli.context import CliContext, describe_model, make_thread_config, open_context
from topicloom.cli.reflect import make_reflection_options
from topicloom.errors import InputError, ReplyError
from topicloom.graph.session import build_session_graph
from topicloom.graph.stored import Graph, get_session
from topicloom.reflection.beside import reflect_beside
from topicloom.reflection.scheduler import run_in_thread
from topicloom.state.receipt import Receipt
from topicloom.state.session import Session
from topicloom.state.stored_message import get_text
from topicloom.storage.names import check_session_name
from topicloom.storage.sessions import SessionStore


@dataclass(slots=True)
class ChatTurns:
    """A session at the terminal."""

    graph: Graph
    config: RunnableConfig
    console: Console
    writing: bool = False
    """Whether a reply stands unfinished on the current line."""

    @property
    def unfinished(self) -> bool:
        """Whether the last turn stopped before its end."""
        return bool(self.graph.get_state(self.config).next)

    def say(self, text: str | None) -> None:
        """Send a message and print the reply.

        Args:
            text: The message; None to run the last turn again after a failure.

        Raises:
            ReplyError: The model gave none.
        """
        try:
            for kind, data in self._stream(text):
                if kind == "messages":
                    self._write(data)
                else:
                    self._remark(data)
        finally:
            self._end_line()

    def _stream(self, text: str | None) -> Iterator[tuple[str, Any]]:
        said = None if text is None else {"messages": [HumanMessage(text)]}
        for part in self.graph.stream(
            said, self.config, stream_mode=["messages", "custom"], durability="exit"
        ):
            kind, data = part
            yield str(kind), data

    def _write(self, data: tuple[object, dict[str, Any]]) -> None:
        chunk, where = data
        if isinstance(chunk, AIMessageChunk) and where.get("langgraph_node") == "main_generate":
            piece = strip_control(get_text(chunk))
            self.console.out(piece, end="", highlight=False)
            self.writing = self.writing or bool(piece)

    def _remark(self, event: dict[str, Any]) -> None:
        remark = describe_event(event)
        if remark:
            self._end_line()
            print_dim(self.console, remark)

    def _end_line(self) -> None:
        if self.writing:
            self.console.out("")
        self.writing = False


def describe_event(event: dict[str, Any]) -> str:
    """What a progress event says to the user; nothing for most."""
    match event:
        case {"type": "split", "rounds": 0}:
            return "· the window is full: notes of earlier turns make room"
        case {"type": "split", "first": first, "last": last}:
            return f"· the window is filling: m{first} to m{last} move into topics"
        case {"type": "searching", "query": query, "when": when}:
            return f"· looking for “{shorten(query, 60)}”" + (f" ({when})" if when else "")
        case {"type": "remembering"}:
            return "· going through all topics for what was said before"
        case {"type": "reply_restarted"}:
            return "· the reply broke off; once more"
        case {"type": "receipt", "receipt": receipt}:
            return _quoted(Receipt.model_validate(receipt))
    return ""


def _quoted(receipt: Receipt) -> str:
    failed = [f"{c.role}: {shorten(c.failure or '', 60)}" for c in receipt.failures]
    lines = [f"· quoted {count_quotes(receipt.quoted, 3)}"] if receipt.quoted else []
    lines += [f"· did without {'; '.join(failed)}"] if failed else []
    return "\n".join(lines)


_HELP = """\
/topics          what has been talked about, and when
/receipt         what the last turn read, quoted and cost
/transcript [n]  the newest n messages (10), word for word
/retry           the last message once more, after a failure
/quit            leave; the session goes on where it stopped"""


def run_chat(given: CliOptions, name: str) -> None:
    """ChatTurns until the input ends.

    Raises:
        InvalidNameError: The name cannot name a session.
        SessionBusyError: It is in use elsewhere.
        ConfigurationError: The model or the folder cannot be used.
    """
    check_session_name(name)
    place, console = open_context(given), open_console()
    builder = build_session_graph(settings=place.settings, storage=place.storage)
    with place.storage.lock(name), place.checkpoints() as saver, place.kept() as store:
        graph = builder.compile(checkpointer=saver, store=store)
        chat = TerminalChat(place, ChatTurns(graph, make_thread_config(name), console), console)
        chat.greet()
        scheduler = reflect_beside(only=[name], **make_reflection_options(place, saver, store))
        with run_in_thread(scheduler):
            for line in read_lines(console):
                if not chat.take(line):
                    break
                scheduler.notify(name)
        for report in scheduler.reports:
            if report.failure:
                print_dim(console, to_one_line(f"reflection is put off: {report.failure}"))


def read_lines(console: Console) -> Iterator[str]:
    """What the user types, or what is piped in, line by line, without empty lines."""
    typed = sys.stdin.isatty()
    while True:
        try:
            line = console.input(Text("› ", style="bold cyan")) if typed else next(sys.stdin)
        except (EOFError, StopIteration):
            return
        line = line.strip()
        if line and not typed:
            console.print(Text(f"› {to_one_line(line)}", style="cyan"), soft_wrap=True)
        if line:
            yield line


@dataclass(frozen=True, slots=True)
class TerminalChat:
    """A session with its commands."""

    place: CliContext
    talk: ChatTurns
    console: Console

    def greet(self) -> None:
        """Say which session this is and what answers."""
        session, store = self._session()
        print_dim(self.console, describe_model(self.place.settings))
        if session.count:
            last = store.record(session, session.count)
            day = format_message_day(last)
            text = f"{session.count} messages in {session.topics} topics until {day}"
        else:
            text = "a new session"
        print_dim(self.console, f"session {session.id}: {text}. /help shows the commands")

    def take(self, line: str) -> bool:
        """Answer a line or do what it commands; False to leave."""
        if line.startswith("/") and not line.startswith("//"):
            return self._command(line)
        self._say(line.removeprefix("/"))
        return True

    def _say(self, text: str | None) -> None:
        try:
            self.talk.say(text)
        except (ReplyError, InputError) as error:
            self.console.print(Text(to_one_line(str(error)), style="red"), soft_wrap=True)
            if isinstance(error, ReplyError):
                print_dim(self.console, "/retry asks for the reply again")

    def _command(self, line: str) -> bool:
        word, _, rest = line.partition(" ")
        commands: Mapping[str, Callable[[str], None]] = {
            "/topics": self._topics,
            "/receipt": self._receipt,
            "/transcript": self._transcript,
            "/retry": self._retry,
            "/help": lambda _: print_dim(self.console, _HELP),
        }
        if word in ("/quit", "/exit"):
            return False
        command = commands.get(word)
        if command is None:
            print_dim(
                self.console, f"there is no {word}; // at the beginning says it as it is\n{_HELP}"
            )
        else:
            command(rest.strip())
        return True

    def _retry(self, _: str) -> None:
        if self.talk.unfinished:
            self._say(None)
        else:
            print_dim(self.console, "there is nothing to try again")

    def _topics(self, _: str) -> None:
        session, store = self._session()
        self.console.print(render_topics(session, store, self.console.width))

    def _receipt(self, _: str) -> None:
        session, store = self._session()
        for receipt in store.receipts(session, newest=1):
            self.console.print(render_receipt(receipt, store.topic_table(session)))

    def _transcript(self, rest: str) -> None:
        session, store = self._session()
        count = int(rest) if rest.isascii() and rest.isdigit() else 10
        print_messages(self.console, store.records(session, session.count - count + 1))

    def _session(self) -> tuple[Session, SessionStore]:
        session = get_session(self.talk.graph, self.talk.config)
        return session, SessionStore(self.place.storage.open(session.id))
