"""`topicloom chat`: a conversation at the terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from rich.console import Console
from rich.text import Text

from topicloom.cli._excerpts import count_quotes, shorten
from topicloom.cli._views import format_day, print_messages, render_receipt, render_topics
from topicloom.cli.console import CliOptions, open_console, print_dim, strip_control, to_one_line
from topicloom.cli.context import (
    CliContext,
    describe_model,
    make_thread_config,
    open_context,
    open_roles,
)
from topicloom.cli.reflect import make_reflection_options
from topicloom.errors import InputError, ReplyError
from topicloom.graph.review import ReviewOptions, review_session
from topicloom.graph.session import build_session_graph
from topicloom.graph.stored import Graph, get_session
from topicloom.reflection.beside import reflect_beside
from topicloom.reflection.scheduler import run_in_thread
from topicloom.roles.responder import RESPONDER
from topicloom.state.channels import SessionInput
from topicloom.state.receipt import Receipt
from topicloom.state.session import Session
from topicloom.state.stored_message import get_text
from topicloom.storage.names import check_session_name
from topicloom.storage.sessions import SessionStore


def describe_event(event: dict[str, Any]) -> str:
    """The text that shows a progress event to the user; empty for most."""
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
            return _describe_receipt(Receipt.model_validate(receipt))
    return ""


def _describe_receipt(receipt: Receipt) -> str:
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


def run_chat(cli: CliOptions, name: str) -> None:
    """Chat until the input ends; raises what `open_context` does, or if the session is in use."""
    check_session_name(name)
    context, console = open_context(cli), open_console()
    builder = build_session_graph(settings=context.settings, storage=context.storage)
    with (
        context.storage.lock(name),
        context.open_checkpoints() as saver,
        context.open_store() as store,
    ):
        graph = builder.compile(checkpointer=saver, store=store)
        chat = TerminalChat(context, graph, make_thread_config(name), console)
        chat.greet()
        turn = Lock()  # held by a turn, and by a review while it makes changes
        kept: ReviewOptions = {"settings": context.settings, "storage": context.storage}
        review = partial(review_session, graph, chat.config, checkpointer=saver, **kept)
        scheduler = reflect_beside(
            only=[name],
            review=lambda _: asyncio.to_thread(review, hold=lambda _: turn),
            **make_reflection_options(context, saver, store),
        )
        with run_in_thread(scheduler):
            for line in read_lines(console):
                with turn:
                    if not chat.handle_line(line):
                        break
                scheduler.notify(name)
        for report in scheduler.reports:
            if report.failure:
                print_dim(console, to_one_line(f"reflection is put off: {report.failure}"))


def read_lines(console: Console) -> Iterator[str]:
    """Yield the lines that are typed or piped in, without empty ones."""
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


@dataclass(slots=True)
class TerminalChat:
    """Runs the turns of a session and the commands of the chat, and prints what they return."""

    context: CliContext
    graph: Graph
    config: RunnableConfig
    console: Console
    writing: bool = False
    """True while a reply stands unfinished on the current line."""

    def greet(self) -> None:
        """Print the session and the model."""
        session, store = self._session()
        print_dim(self.console, describe_model(self.context.settings))
        server = getattr(open_roles(self.context)[RESPONDER], "server", None)
        if line := server and server.describe():
            print_dim(self.console, to_one_line(line))
        if session.count:
            day = format_day(store.message(session, session.count).day)
            text = f"{session.count} messages in {session.topics} topics until {day}"
        else:
            text = "a new session"
        print_dim(self.console, f"session {session.id}: {text}. /help shows the commands")

    def handle_line(self, line: str) -> bool:
        """Answer a line or run its command; False if it ends the chat."""
        if line.startswith("/") and not line.startswith("//"):
            return self._command(line)
        self._reply({"messages": [HumanMessage(line.removeprefix("/"))]})
        return True

    def _reply(self, said: SessionInput | None) -> None:
        """Run a turn, or for None a failed turn again, and print the reply."""
        parts: Iterator[Any] = self.graph.stream(
            said, self.config, stream_mode=["messages", "custom"], durability="exit"
        )
        try:
            for kind, data in parts:
                if kind == "messages":
                    self._write(data)
                elif line := describe_event(data):
                    self._end_line()
                    print_dim(self.console, line)
        except (ReplyError, InputError) as error:
            self._end_line()
            self.console.print(Text(to_one_line(str(error)), style="red"), soft_wrap=True)
            if isinstance(error, ReplyError):
                print_dim(self.console, "/retry asks for the reply again")
        finally:
            self._end_line()

    def _write(self, data: tuple[object, dict[str, Any]]) -> None:
        chunk, metadata = data
        if isinstance(chunk, AIMessageChunk) and metadata.get("langgraph_node") == "main_generate":
            piece = strip_control(get_text(chunk))
            self.console.out(piece, end="", highlight=False)
            self.writing = self.writing or bool(piece)

    def _end_line(self) -> None:
        if self.writing:
            self.console.out("")
        self.writing = False

    def _command(self, line: str) -> bool:
        word, _, rest = line.partition(" ")
        if word in ("/quit", "/exit"):
            return False
        session, store = self._session()
        match word:
            case "/topics":
                self.console.print(render_topics(session, store, self.console.width))
            case "/receipt":
                for receipt in store.receipts(session, newest=1):
                    self.console.print(render_receipt(receipt, store.topic_table(session)))
            case "/transcript":
                number = rest.strip()
                count = int(number) if number.isascii() and number.isdigit() else 10
                print_messages(self.console, store.messages(session, session.count - count + 1))
            case "/retry" if self.graph.get_state(self.config).next:
                self._reply(None)
            case "/retry":
                print_dim(self.console, "there is nothing to try again")
            case "/help":
                print_dim(self.console, _HELP)
            case _:
                text = f"there is no {word}; // at the beginning says it as it is\n{_HELP}"
                print_dim(self.console, text)
        return True

    def _session(self) -> tuple[Session, SessionStore]:
        session = get_session(self.graph, self.config)
        return session, SessionStore(self.context.storage.open(session.id))
