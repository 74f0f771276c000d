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
from rich.console import Console

from topicloom.cli import main
from topicloom.cli.chat import TerminalChat, describe_event
from topicloom.cli.context import make_context, make_thread_config
from topicloom.graph.session import build_session_graph
from topicloom.index.encoders import default_embedder
from topicloom.roles.choice import embedded_roles
from topicloom.roles.responder import RESPONDER, ReplyRequest
from topicloom.settings import Settings
from topicloom.storage.files import FileStorage


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


def test_commands(run: Run) -> None:
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

    def __next__(self) -> str:
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


def test_a_reply_that_fails_does_not_end_the_chat(tmp_path: Path) -> None:
    settings = Settings(reply_attempts=1, fsync=False, folder=tmp_path)
    context = make_context(tmp_path, settings)
    roles = embedded_roles(default_embedder()).replace(RESPONDER, Moody(2))
    builder = build_session_graph(settings=settings, roles=roles, storage=context.storage)
    screen = io.StringIO()
    console = Console(file=screen, width=200)
    graph = builder.compile(checkpointer=InMemorySaver())
    chat = TerminalChat(context, graph, make_thread_config("x"), console)
    assert all(map(chat.handle_line, ("hello", "/retry", "/retry", "/transcript")))
    said = screen.getvalue()
    assert said.count("the line is dead") == 2
    assert said.count("/retry asks for the reply again") == 2
    assert "well said[2J\n" in said
    assert "\x1b" not in said
    assert said.count("user: hello") == 1


@pytest.mark.parametrize(
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
