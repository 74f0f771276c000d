"""`topicloom chat`: a conversation at the terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import Any

from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from rich.console import Console

from topicloom import (
    RESPONDER,
    InputError,
    Memory,
    Receipt,
    ReplyError,
    Session,
    SessionInput,
    SessionStore,
    get_session,
    run_in_thread,
)
from topicloom.hosting import (
    Graph,
    find_deps,
    get_text,
    make_scheduler,
    name_thread,
    strip_own_replies,
)
from topicloom_app.cli._views import (
    choose_receipts,
    count_quotes,
    format_day,
    print_found,
    print_messages,
    render_receipt,
    render_topics,
    shorten,
)
from topicloom_app.cli.console import (
    CliOptions,
    ReplyWriter,
    count_of,
    open_console,
    print_dim,
    print_line,
    strip_control,
    to_one_line,
)
from topicloom_app.cli.context import (
    CliContext,
    describe_model,
    make_context,
    open_context,
)
from topicloom_app.cli.editor import COMMANDS, LineEditor, drop_typed_on_failure, read_piped
from topicloom_app.cli.purge import forget
from topicloom_app.cli.reflect import render_facts
from topicloom_app.cli.server_check import describe_server
from topicloom_app.cli.words import say
from topicloom_app.session_names import check_session_name


def describe_event(event: dict[str, Any]) -> str:
    """The text that shows a progress event to the user; empty for most."""
    match event:
        case {"type": "split", "rounds": 0}:
            return say("· the window is full: notes of earlier turns make room")
        case {"type": "split", "first": first, "last": last}:
            moving = "· the window is filling: m{first} to m{last} move into topics"
            return say(moving, first=first, last=last)
        case {"type": "searching", "query": query, "when": when}:
            when = f" ({when})" if when else ""
            return say("· looking for “{query}”{when}", query=shorten(query, 60), when=when)
        case {"type": "remembering"}:
            return say("· going through all topics for what was said before")
        case {"type": "reply_restarted"}:
            return say("· the reply broke off; once more")
        case {"type": "embedding", "left": left}:
            reading = "· {count} older messages are being read anew; until then words find them"
            return say(reading, count=left)
        case {"type": "receipt", "receipt": receipt}:
            return _describe_receipt(Receipt.model_validate(receipt))
    return ""


def _describe_receipt(receipt: Receipt) -> str:
    failed = [f"{c.role}: {shorten(c.failure or '', 60)}" for c in receipt.failures]
    embedded = any(c.role == "responder" and c.model == "embedded" for c in receipt.calls)
    quoted = receipt.quoted and not embedded  # such a reply says itself what it quotes
    lines = [say("· quoted {quotes}", quotes=count_quotes(receipt.quoted, 3))] if quoted else []
    lines += [say("· did without {roles}", roles="; ".join(failed))] if failed else []
    return "\n".join(lines)


_SEEN, _FOUND = 100, 5
"""Newest messages that the arrow keys go through, and messages that a search shows."""


@drop_typed_on_failure()
def run_chat(
    cli: CliOptions,
    name: str,
    window: int | None,
    user: str = "",
    scope: str = "",
) -> None:
    """Chat until the input ends; raises what `open_context` does, or if the session is in use.

    The session is one of `user` in `scope`, if a user is named; it is refused if it is another's.
    """
    check_session_name(name)
    context, console = open_context(cli), open_console()
    editor = LineEditor(console) if sys.stdin.isatty() and sys.stdout.isatty() else None
    if window is not None:
        settings = context.settings.model_copy(update={"window": window})
        context = make_context(context.folder, settings)
    with context.open_graph() as (graph, saver, store), context.storage.lock(name):
        config = name_thread(name, user, scope)
        chat = TerminalChat(context, graph, config, ReplyWriter(console))
        chat.greet()
        if editor:
            editor.add_history(chat.list_said())
        turn = Lock()  # held by a turn, and by a review while it makes changes
        scheduler = make_scheduler(
            graph, checkpointer=saver, store=store, only=[name], hold=lambda _: turn, threads=True
        )
        background = run_in_thread(scheduler) if context.settings.background else nullcontext()
        with background:
            for line in editor.read_lines() if editor else read_piped(console):
                with turn:
                    if not chat.handle_line(line):
                        break
                scheduler.notify(name)
        for _, why in scheduler.failures:
            print_dim(console, "reflection is put off: {why}", why=to_one_line(why))


@dataclass(slots=True)
class TerminalChat:
    """Runs the turns of a session and the commands of the chat, and prints what they return."""

    context: CliContext
    graph: Graph
    config: RunnableConfig
    writer: ReplyWriter
    announced: bool = False
    """True once it was said that topics are made."""
    announced_rest: bool = False
    """True once it was said that a role that was late rests."""

    @property
    def console(self) -> Console:
        """Where all of it is printed."""
        return self.writer.console

    def greet(self) -> None:
        """Print the session and the model."""
        session, store = self._session()
        print_dim(self.console, describe_model(self.context.settings))
        server = getattr(find_deps(self.graph).roles[RESPONDER], "server", None)
        if line := server and describe_server(server):
            print_dim(self.console, to_one_line(line))
        if session.count:
            day = format_day(store.message(session, session.count).day)
            topics = count_of(len(Memory.of(self.graph, self.config).topics()), "topic")
            text = say(
                "{messages} in {topics} until {day}",
                messages=count_of(session.count, "message"),
                topics=topics,
                day=day,
            )
        else:
            text = say("a new session")
        print_dim(
            self.console,
            "session {session}: {state}. /help shows the commands",
            session=session.id,
            state=text,
        )

    def list_said(self) -> list[str]:
        """What the user said last, the oldest first."""
        session, store = self._session()
        newest = store.messages(session, max(1, session.count - _SEEN))
        return [m.text for m in newest if m.role == "user"]

    def handle_line(self, line: str) -> bool:
        """Answer a line or run its command; False if it ends the chat."""
        try:
            if line.startswith("/") and not line.startswith("//"):
                return self._command(line)
            self._reply({"messages": [HumanMessage(line.removeprefix("/"))]})
        except (ReplyError, InputError) as error:
            print_line(self.console, str(error), style="red")
            if isinstance(error, ReplyError):
                print_dim(self.console, "/retry asks for the reply again")
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
                elif line := self._describe(data):
                    self.writer.end()
                    print_dim(self.console, line)
        except KeyboardInterrupt:
            self.writer.end()
            print_dim(self.console, "· stopped; /retry asks for the reply again")
        finally:
            self.writer.end()

    def _describe(self, event: dict[str, Any]) -> str:
        """The line on an event; that topics are made, or that a role rests, is said once."""
        if event["type"] == "split":
            if self.announced:
                return ""
            self.announced = True
        line = describe_event(event)
        unasked = event["receipt"].get("unasked") if event["type"] == "receipt" else None
        if unasked and not self.announced_rest:
            self.announced_rest = True
            names = ", ".join(unasked)
            rest = say("· not asked for now: {roles}. /receipt says why", roles=names)
            line = "\n".join(filter(None, [line, rest]))
        return line

    def _write(self, data: tuple[object, dict[str, Any]]) -> None:
        chunk, metadata = data
        if isinstance(chunk, AIMessageChunk) and metadata.get("langgraph_node") == "main_generate":
            self.writer.write(strip_control(get_text(chunk)))

    def _command(self, line: str) -> bool:
        word, _, rest = line.partition(" ")
        given = rest.split()
        memory, console = Memory.of(self.graph, self.config), self.console
        match word:
            case "/quit" | "/exit":
                return False
            case "/topics" if given:
                for topic in given:
                    print_messages(console, memory.topic(topic).messages())
            case "/topics":
                console.print(
                    render_topics(
                        memory, console.width, splits_at=self.context.settings.split.trigger
                    )
                )
            case "/search" if given:
                found = memory.search(rest, limit=2 * _FOUND)
                found = [hit for hit in found if strip_own_replies(hit.message.text).strip()]
                print_found(console, found[:_FOUND])
            case "/receipt":
                known = {topic.id: topic for topic in memory.topics()}
                prices = self.context.settings.prices
                for receipt in choose_receipts(memory.receipts, _read_count(given, 1)):
                    console.print(render_receipt(receipt, known, prices))
            case "/transcript":
                print_messages(console, memory.history(limit=_read_count(given, 10)))
            case "/facts":
                facts = memory.facts()
                if facts:
                    console.print(render_facts(facts.values()))
                else:
                    print_dim(
                        console, "no facts yet: they are looked for in pauses of the conversation"
                    )
            case "/forget" if given:
                forget(console, memory, given)
            case "/retry" if self.graph.get_state(self.config).next:
                self._reply(None)
            case "/retry":
                print_dim(console, "there is nothing to try again")
            case "/help":
                print_dim(console, _list_commands())
            case _:
                usage = next((usage for usage in COMMANDS if usage.split()[0] == word), "")
                if usage:
                    wrong = "write it as {usage} (to send it as a message, begin it with //)"
                    print_dim(console, wrong, usage=usage)
                else:
                    unknown = "there is no {word} (to send it as a message, begin it with //)"
                    print_dim(console, unknown, word=word)
                print_dim(console, _list_commands())
        return True

    def _session(self) -> tuple[Session, SessionStore]:
        session = get_session(self.graph, self.config)
        return session, SessionStore(self.context.storage.open(session.id))


def _list_commands() -> str:
    return "\n".join(f"{usage:16} {say(what)}" for usage, what in COMMANDS.items())


def _read_count(given: Sequence[str], otherwise: int) -> int:
    """The number that a command was given; raises `InputError` if it is none."""
    if not given:
        return otherwise
    if not re.fullmatch("0*[1-9][0-9]{0,8}", given[0]):
        raise InputError("{given!r} is not a number, such as 3", given=given[0])
    return int(given[0])
