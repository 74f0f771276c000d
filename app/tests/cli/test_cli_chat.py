"""`topicloom chat` with piped input."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import Run
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver
from openai_behaviours import Reply, Status
from openai_server import OpenAIServer
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console
from tables import each_row

from topicloom import (
    RESPONDER,
    Call,
    FileStorage,
    Receipt,
    ReflectionStore,
    ReplyRequest,
    Responder,
    Settings,
    build_session_graph,
    default_embedder,
    embedded_roles,
)
from topicloom.hosting import name_thread
from topicloom_app.cli import main
from topicloom_app.cli.chat import TerminalChat, describe_event
from topicloom_app.cli.console import ReplyWriter
from topicloom_app.cli.context import make_context
from topicloom_app.cli.editor import LineEditor


@pytest.mark.slow
def test_a_session_goes_on_where_it_stopped(run: Run) -> None:
    first = run("chat", stdin="The cellar smells of fish\n\n   \n")
    assert first.code == 0
    assert first.err == ""
    assert "a new session" in first.out
    assert "no model is set" in first.out
    assert first.out.count("› ") == 1
    second = run("chat", "default", stdin="/transcript 2\n/topics\n/receipt\n")
    assert "session default: 2 messages in 0 topics" in second.out
    assert "user: The cellar smells of fish" in second.out
    assert "not in a topic yet" in second.out
    assert "turn 1, answering m1" in second.out


def test_commands_of_the_chat_answer_and_wrong_ones_say_so(run: Run) -> None:
    outcome = run("chat", "a b", stdin="/help\n/nothing\n/retry\n/topics\n/receipt\n/quit\nnever\n")
    assert outcome.code == 0
    assert "/transcript [n]" in outcome.out
    assert "there is no /nothing" in outcome.out
    assert "nothing to try again" in outcome.out
    assert "nothing has been said yet" in outcome.out
    assert "never" not in outcome.out


def test_a_message_that_begins_with_a_slash(run: Run) -> None:
    run("chat", stdin="//etc is full\n")
    assert "user: /etc is full" in run("transcript", "default").out


def test_the_model_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICLOOM_MODEL", "openai:some")
    monkeypatch.setenv("TOPICLOOM_BASE_URL", "http://127.0.0.1:9/v1")
    assert "model openai:some" in run("chat").out


def test_the_user_is_told_why_a_reflection_failed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no room for facts")

    monkeypatch.setattr(ReflectionStore, "change_facts", fail)
    monkeypatch.setenv("TOPICLOOM_REFLECTION__TURNS", "1")
    outcome = run("chat", stdin="I live in Leeds.\n")
    assert "reflection is put off: RuntimeError: no room for facts" in outcome.out


@pytest.mark.slow
def test_a_model_replies_once(
    run: Run, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer
) -> None:
    openai_server.models = [{"id": "some", "meta": {"n_ctx": 8_192}}]
    openai_server.then(Reply("Yes."), Status(400, message="response_format: no such thing"))
    openai_server.then(Reply("Yes."))
    openai_server.then(Reply("The jar stands in the cellar, on the second shelf."))
    monkeypatch.setenv("TOPICLOOM_MODEL", "openai:some")
    monkeypatch.setenv("TOPICLOOM_BASE_URL", openai_server.base_url)
    outcome = run("chat", stdin="Where is the jar?\n")
    assert outcome.code == 0
    text = " ".join(outcome.out.split())
    assert (
        "context 8,192 tokens; takes tools, roles in a row, system, max_tokens; no json_schema: "
        in text
    )
    assert outcome.out.count("The jar stands in the cellar, on the second shelf.\n") == 1


def test_a_server_out_of_order_is_asked_once(
    run: Run, monkeypatch: pytest.MonkeyPatch, openai_server: OpenAIServer
) -> None:
    openai_server.otherwise(Status(500))
    monkeypatch.setenv("TOPICLOOM_MODEL", "openai:out-of-order")
    monkeypatch.setenv("TOPICLOOM_BASE_URL", openai_server.base_url)
    assert "no answer: " in run("chat").out
    assert len(openai_server.requests) == 1


def test_a_session_in_use(run: Run, tmp_path: Path) -> None:
    with FileStorage(tmp_path / "sessions").lock("busy"):
        outcome = run("chat", "busy", stdin="hello\n")
    assert outcome.code == 2
    assert "'busy' is in use" in outcome.err
    assert run("chat", "busy").code == 0


class Interrupted:
    """A keyboard at which Ctrl-C is pressed."""

    def isatty(self) -> bool:
        return False

    def __iter__(self) -> Iterator[str]:
        raise KeyboardInterrupt


def test_ctrl_c_is_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Interrupted())
    with pytest.raises(SystemExit) as end:
        main(["--folder", str(tmp_path), "chat"])
    assert end.value.code == 130
    assert capsys.readouterr().err == ""


@dataclass
class Moody:
    """A responder that fails as often as it is told."""

    failures: int
    model: str = "moody"

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """Fail, or say what steers terminals."""
        self.failures -= 1
        if self.failures >= 0:
            raise ConnectionError("the line is dead")
        yield AIMessageChunk(content="well ")
        yield AIMessageChunk(content="said\x1b[2J")

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """Not used here."""
        for chunk in self.stream(request):
            yield chunk


def open_chat(folder: Path, responder: Responder, console: Console) -> TerminalChat:
    settings = Settings(reply_attempts=1, fsync=False, folder=folder)
    context = make_context(folder, settings)
    roles = embedded_roles(default_embedder()).replace(RESPONDER, responder)
    builder = build_session_graph(settings=settings, roles=roles, storage=context.storage)
    graph = builder.compile(checkpointer=InMemorySaver())
    return TerminalChat(context, graph, name_thread("x"), ReplyWriter(console))


def test_a_reply_that_fails_does_not_end_the_chat(tmp_path: Path) -> None:
    screen = io.StringIO()
    chat = open_chat(tmp_path, Moody(2), Console(file=screen, width=200))
    assert all(map(chat.handle_line, ("hello", "/retry", "/retry", "/transcript")))
    said = screen.getvalue()
    assert said.count("the line is dead") == 2
    assert said.count("/retry asks for the reply again") == 2
    assert "well said[2J\n" in said
    assert "\x1b" not in said
    assert said.count("user: hello") == 1


@dataclass
class Stopped:
    """A responder that is stopped by Ctrl-C the first time."""

    calls: int = 0
    model: str = "stopped"

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """Begin, and be stopped; later, say something long in two lines."""
        self.calls += 1
        if self.calls == 1:
            yield AIMessageChunk(content="well ")
            raise KeyboardInterrupt
        yield AIMessageChunk(content="The jar is 1")
        yield AIMessageChunk(content="23,456 cm high.\n\n小黑在这儿吃鱼吃得很开心")

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """Not used here."""
        for chunk in self.stream(request):
            yield chunk


def test_ctrl_c_stops_a_reply_and_loses_nothing(tmp_path: Path) -> None:
    screen = io.StringIO()
    chat = open_chat(tmp_path, Stopped(), Console(file=screen, width=100))
    assert all(map(chat.handle_line, ("hello", "/retry", "/transcript")))
    said = screen.getvalue()
    assert "well \n· stopped; /retry asks for the reply again\n" in said
    assert said.count("user: hello") == 1
    assert "123,456 cm high" in said


def test_a_reply_is_laid_out_at_a_terminal(tmp_path: Path) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=20, force_terminal=True, color_system=None)
    chat = open_chat(tmp_path, Stopped(1), console)
    chat.handle_line("hello")
    lines = [line.rstrip() for line in screen.getvalue().splitlines()]
    assert lines == [
        "  The jar is",
        "  123,456 cm high.",
        "",
        "  小黑在这儿吃鱼吃",
        "  得很开心",
    ]


def test_a_transcript_is_laid_out_beside_its_numbers(tmp_path: Path) -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=36, force_terminal=True, color_system=None)
    chat = open_chat(tmp_path, Stopped(1), console)
    chat.handle_line("hello")
    screen.truncate(0)
    chat.handle_line("/transcript")
    lines = [line.rstrip()[12:] for line in screen.getvalue().splitlines()[1:]]
    assert lines == [
        "user: hello",
        "assistant: The jar is",
        "123,456 cm high.",
        "",
        "小黑在这儿吃鱼吃得很开心",
    ]


@pytest.mark.slow
def test_commands_take_what_they_say(run: Run) -> None:
    run("chat", "--window", "1000", stdin="My mother arrives on 16 May.\nHello\nThe cat is ill\n")
    lines = ("/receipt 2", "/receipt x", "/search mother", "/search", "/topics t9", "/facts")
    said = run("chat", stdin="\n".join([f"/transcript {'1' * 5_000}", *lines])).out
    assert "1' is not a number" in said
    assert "turn 2, answering m3" in said
    assert "turn 3, answering m5" in said
    assert "'x' is not a number" in said
    assert "m1 " in said.partition("/search mother")[2].splitlines()[1]
    assert "Noted" not in said
    assert "write it as /search words (to send it as a message, begin it with //)" in said
    assert "has no topic 't9'" in said
    assert "no facts yet" in said
    said = run("chat", stdin="/forget m1\ny\n/transcript\n/forget m77\n").out
    assert "1 message was removed" in said
    assert "mother" not in said.partition("was removed")[2]
    assert "has no message 'm77'" in said


@pytest.mark.slow
def test_splits_are_told_once(run: Run) -> None:
    said = run(
        "chat", "--window", "1000", stdin="".join(f"About {n}: {'x ' * 300}\n" for n in range(9))
    )
    assert said.out.count("move into topics") == 1


def test_lines_are_edited_as_they_are_typed() -> None:
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        editor = LineEditor(Console(file=io.StringIO()))
        keys.send_text("my mother\r\x1b[200~two\nlines\x1b[201~\rdropped\x03猫狗\x7f\r\r\x04")
        assert list(editor.read_lines()) == ["my mother", "two\nlines", "猫"]


@each_row(
    ("event", "part"),
    [
        ({"type": "split", "rounds": 3, "first": 1, "last": 9}, "m1 to m9"),
        ({"type": "split", "rounds": 0, "first": 1, "last": 0}, "make room"),
        ({"type": "searching", "query": "the cellar", "when": "in May"}, "“the cellar” (in May)"),
        ({"type": "searching", "query": "the cellar", "when": None}, "“the cellar”"),
        ({"type": "remembering", "query": "x"}, "all topics"),
        ({"type": "reply_restarted"}, "once more"),
    ],
)
def test_events_that_are_shown(event: dict[str, object], part: str) -> None:
    assert part in describe_event(event)


def test_unknown_events_are_not_shown() -> None:
    assert describe_event({"type": "something"}) == ""
    assert describe_event({}) == ""


def test_that_roles_rest_is_said_once(tmp_path: Path) -> None:
    context = make_context(tmp_path, Settings(embedder="hashing"))
    graph = build_session_graph(settings=context.settings, storage=context.storage)
    out = io.StringIO()
    writer = ReplyWriter(Console(file=out, width=200))
    chat = TerminalChat(context, graph.compile(), name_thread("s"), writer)
    blank = Receipt(turn=1, user="m1", started="", seconds=0.0, scores={})
    late = Call(role="splitter", model="slow", failure="no answer within 60 s")
    rest = {"splitter": "it was late in this turn", "reader": "slow was late in another role"}
    first = blank.model_copy(update={"calls": (late,), "unasked": rest})
    told = [
        chat._describe({"type": "receipt", "receipt": r.model_dump(mode="json")})
        for r in (first, blank.model_copy(update={"unasked": rest}), blank)
    ]
    assert told[0].splitlines() == [
        "· did without splitter: no answer within 60 s",
        "· not asked for now: splitter, reader. /receipt says why",
    ]
    assert told[1:] == ["", ""]
