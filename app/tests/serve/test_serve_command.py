"""`topicloom serve` as a process: what it keeps, how it ends, and what it refuses to begin with."""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from command_line import Run, assert_one_line, run
from endpoints import ask, open_client, serve_command
from openai_behaviours import Drip, Reply
from openai_server import OpenAIServer
from postgres import open_postgres

from topicloom import ConfigurationError
from topicloom_app.cli.listening import listen
from topicloom_app.cli.serve import read_keys

__all__ = ["run"]


def history(client: openai.OpenAI, server: OpenAIServer) -> None:
    """A talk of three turns, of which the second is edited."""
    server.otherwise(lambda request: Reply(f"heard {request['messages'][-1]['content'][-5:]}"))
    said = ask(client, ask(client, ask(client, [], "say 1"), "say 2"), "say 3")
    assert [m["content"][-5:] for m in said] == ["say 1"] * 2 + ["say 2"] * 2 + ["say 3"] * 2


@pytest.mark.slow
def test_sessions_outlive_the_server(tmp_path: Path, openai_server: OpenAIServer, run: Run) -> None:
    with serve_command(tmp_path, openai_server) as (url, _), open_client(url, "secret") as client:
        history(client, openai_server)
    (name,) = re.findall(r"chat-\w+", run("sessions", folder=tmp_path).out)
    with serve_command(tmp_path, openai_server) as (url, _), open_client(url, "secret") as client:
        said: Any = [{"role": "user", "content": "say 1"}]
        said += [{"role": "assistant", "content": "heard say 1"}]
        asked = len(openai_server.requests)
        edited = ask(client, said, "say 4")
        assert len(openai_server.requests) == asked + 1
        shown = openai_server.requests[-1]["messages"]
        sent = [str(m["content"])[-5:] for m in shown if m["role"] != "system"]
        assert sent == ["say 1", "say 1", "say 4"]
    shown = run("transcript", name, folder=tmp_path).out
    assert [line[-5:] for line in shown.splitlines() if "say" in line] == ["say 1"] * 2 + [
        "say 4"
    ] * 2
    assert edited[-1]["content"] == "heard say 4"


@pytest.mark.slow
def test_what_goes_on_is_finished(tmp_path: Path, openai_server: OpenAIServer, run: Run) -> None:
    openai_server.then(Drip(0.2, Reply("one two three four")))
    with (
        serve_command(tmp_path, openai_server) as (url, process),
        open_client(url, "secret") as client,
    ):
        stream = client.chat.completions.create(
            model="some", messages=[{"role": "user", "content": "Go"}], stream=True, user="ann"
        )
        parts = iter(stream)
        said = next(parts).choices[0].delta.content or ""
        process.send_signal(signal.SIGTERM)
        said += "".join(part.choices[0].delta.content or "" for part in parts)
    assert said == "one two three four"
    assert "one two three four" in run("transcript", "ann", folder=tmp_path).out


@pytest.fixture
def postgres() -> Iterator[str]:
    with open_postgres() as uri:
        yield uri


@pytest.mark.slow
def test_the_endpoint_keeps_sessions_in_postgres(
    tmp_path: Path, openai_server: OpenAIServer, postgres: str
) -> None:
    for _ in range(2):
        with (
            serve_command(tmp_path, openai_server, "--postgres", postgres) as (url, _process),
            open_client(url, "secret") as client,
        ):
            history(client, openai_server)
    assert not list(tmp_path.glob("chat-*"))


def test_what_it_does_not_begin_with(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert_one_line(run("serve", "--host", "0.0.0.0"), "other machines could reach 0.0.0.0")
    assert_one_line(run("serve", "--host", "example.org"), "other machines could reach example.org")
    nowhere = ("--port", "0", "--postgres", "nowhere")
    assert_one_line(run("serve", *nowhere), "PostgreSQL cannot be used", "nowhere")
    monkeypatch.setenv("TOPICLOOM_SERVE_KEYS", "a=1,b")
    assert_one_line(run("serve"), "TOPICLOOM_SERVE_KEYS cannot be used")


def test_keys_of_users_are_read() -> None:
    assert read_keys("") == {}
    assert read_keys("secret==") == {"": "secret=="}
    assert read_keys("ann=a, bob=b") == {"ann": "a", "bob": "b"}
    assert read_keys("ann=YQ==") == {"ann": "YQ=="}
    for wrong in ("a,b", "a.b=1,c=2", "ann=a,ann=b", "=a,b=c"):
        with pytest.raises(ConfigurationError):
            read_keys(wrong)


def test_answers_are_not_held_back() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
