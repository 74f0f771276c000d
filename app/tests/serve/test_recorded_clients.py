"""Requests as five clients send them that played no part in building the endpoint.

Their shapes are those of the public repositories of Zed, Cherry Studio, big-AGI, Chatbox and
Continue: which messages, which instructions and tools, streamed or not. The words are our own.
Whatever they ask for themselves, the session has only what a person said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from client_talk import PIXEL
from endpoints import Message, remembered, serving
from openai_behaviours import Call, Reply
from openai_server import OpenAIServer

from topicloom import FileStorage
from topicloom.hosting import Graph
from topicloom_app.serve.histories import SIDE_SUFFIX

SAID = [
    ("My sister Ida moves to Ghent on 3 May.", "Noted: Ida moves to Ghent on 3 May. Anything else"),
    ("Who moves, and where to? Tell me in a long sentence, please.", "Ida does, and to Ghent."),
    ("And when is that, did I say?", "On 3 May, you said so at the beginning of this talk."),
]
MADE = "Ida in Ghent"
"""What a client gets for itself."""


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def system(text: str) -> Message:
    return {"role": "system", "content": text}


@dataclass
class Client:
    """What is known of a talk, and who sends it."""

    http: httpx.Client
    server: OpenAIServer
    waited: list[timedelta]
    headers: dict[str, str]
    fields: dict[str, Any]
    said: list[Message] = field(default_factory=list)

    def send(self, reply: Reply, seconds: float, **body: Any) -> str:
        """Send a request some seconds behind the last answer; returns the answer's text."""
        self.server.otherwise(reply)
        self.waited[0] = timedelta(seconds=seconds)
        given = {"model": "topicloom", **self.fields, **body}
        answer = self.http.post("/chat/completions", json=given, headers=self.headers)
        assert answer.status_code == 200, answer.text
        if not body.get("stream"):
            return str(answer.json()["choices"][0]["message"]["content"] or "")
        lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: {")]
        chunks = [c for line in lines for c in json.loads(line)["choices"]]
        return "".join(c["delta"].get("content") or "" for c in chunks)

    def say(self, text: str, reply: str, *told: Message, seconds: float = 60, **body: Any) -> None:
        """What a person says, some seconds after the answer before."""
        asked = [*told, *self.said, user(text)]
        assert self.send(Reply(reply), seconds, messages=asked, **body) == reply
        self.said += [asked[-1], {"role": "assistant", "content": reply}]

    def ask(self, *messages: Message, seconds: float = 0.2, reply: Any = None, **body: Any) -> None:
        """What a client asks for itself."""
        self.send(reply or Reply(MADE), seconds, messages=list(messages), **body)

    def lines(self, names: dict[str, str], newest: int, most: int) -> list[str]:
        """The newest messages, a line each, cut after some letters."""
        return [f"{names[m['role']]}{m['content'][:most]}" for m in self.said[-newest:]]


EDIT: Message = {
    "type": "function",
    "function": {"name": "edit_file", "parameters": {"type": "object", "properties": {}}},
}


def zed(client: Client, text: str, reply: str) -> None:
    """The talk with instructions and tools; the title behind the whole of it, streamed as well,
    with neither."""
    options: Any = {"stream_options": {"include_usage": True}, "max_completion_tokens": 4_000}
    told = system("You are a coding assistant in an editor.")
    client.say(text, reply, told, stream=True, tools=[EDIT], **options)
    wanted = user("A title of at most seven words for this talk, and nothing else.")
    client.ask(*client.said, wanted, stream=True, **options)


def cherry_studio(client: Client, text: str, reply: str) -> None:
    """What to look for, before the message; the title from the talk as JSON in one message."""
    talk = "\n".join(client.lines({"user": "user: ", "assistant": "assistant: "}, 4, 2_000))
    told = system("Rephrase the question so that it stands alone.")
    client.ask(told, user(f"<history>{talk}</history>\n<question>{text}</question>"), seconds=60)
    client.say(text, reply, system("Be kind."), seconds=0.1, stream=True, temperature=0.7)
    rows = [{"role": m["role"], "mainText": m["content"]} for m in client.said[-5:]]
    client.ask(system("You name talks, in ten words."), user(json.dumps(rows)), stream=False)


def big_agi(client: Client, text: str, reply: str) -> None:
    """The title from first lines cut after 100 letters, by other instructions; a diagram by the
    newest two messages as they are, with a call that is asked for."""
    client.say(text, reply, system("You are a generalist."), stream=True)
    lines = client.lines({"user": "- You: ", "assistant": "- Assistant: "}, 5, 100)
    block = "\n".join(f"{line}..." for line in lines)
    told = system("You make short titles.")
    client.ask(told, user(f"Look at this talk:\n```\n{block}\n```"), stream=True)
    draw = {**EDIT, "function": {**EDIT["function"], "name": "draw_diagram"}}
    called = Reply(tool_calls=[Call("draw_diagram", {"rating": 1})])
    told = system("Say if a diagram helps. The assistant is: You are a generalist.")
    choice = {"type": "function", "function": {"name": "draw_diagram"}}
    client.ask(told, *client.said[-2:], reply=called, tools=[draw], tool_choice=choice)


def chatbox(client: Client, text: str, reply: str) -> None:
    """The title and what to ask next, each one message with the talk between marks."""
    client.say(text, reply, system("You are a helpful assistant."), stream=True)
    parts = client.lines({"user": "", "assistant": ""}, 6, 100)
    talk = "\n---------\n".join(parts)
    client.ask(
        user(f"Name this talk in ten letters.\n\n```\n{talk}\n```\n\nThe name:"), stream=True
    )
    client.ask(user(f"What may be asked next?\n```\n{talk}\n```"), stream=True, seconds=1)


def continue_dev(client: Client, text: str, reply: str) -> None:
    """The title from the first reply alone, once."""
    told = system("You are in an editor.")
    client.say(text, reply, told, stream=True, tools=[EDIT], max_tokens=2_000)
    if len(client.said) == 2:
        wanted = f"Sum up in a few words what is wanted in what follows.\n\n{reply}"
        client.ask(user(wanted), stream=True, max_tokens=12)


@pytest.fixture
def served(tmp_path: Path, openai_server: OpenAIServer) -> Iterator[tuple[Any, Graph]]:
    waited = [timedelta(0)]
    options: Any = {"now": lambda: datetime.now(UTC) + waited[0], "per_minute": 100_000}
    with (
        serving(tmp_path, openai_server, **options) as (url, graph),
        httpx.Client(base_url=url, timeout=60) as http,
    ):
        yield (lambda headers, fields: Client(http, openai_server, waited, headers, fields)), graph


@pytest.mark.slow
@pytest.mark.parametrize("turn", [zed, cherry_studio, big_agi, chatbox, continue_dev])
def test_only_what_a_person_said(tmp_path: Path, served: Any, turn: Any) -> None:
    make_client, graph = served
    for headers, fields in (({}, {}), ({}, {"user": "u1"}), ({"X-Chat-Id": "c1"}, {})):
        client, named = make_client(headers, fields), fields.get("user") or headers.get("X-Chat-Id")
        for text, reply in SAID:
            turn(client, text, reply)
            session = named or find_unnamed(tmp_path, graph)
            assert remembered(tmp_path, graph, session) == client.said, (session, text)


@pytest.mark.slow
def test_librechat_holds_a_conversation(tmp_path: Path, served: Any) -> None:
    """LibreChat gives `user` alone, and streams all but the title: a first answer once more, an
    edit, an image, and a tool of an agent's."""
    make_client, graph = served
    client: Client = make_client({}, {"user": "65675e24"})
    given: Any = {"stream": True, "stream_options": {"include_usage": True}, "tools": [EDIT]}
    told = system("You are Ida's agent. The date is 2026-11-26.")
    (text, reply), *_ = SAID
    client.say(text, "Given up.", told, **given)
    talk = "\n\n".join(client.lines({"user": "User: ", "assistant": "AI: "}, 2, 2_000))
    client.ask(user(f"A title in five words.\n\n{talk}"))
    client.said.clear()
    client.say(text, reply, told, **given)  # once more
    begun = [*client.said]
    client.say("Go left.", "Left it is.", told, **given)
    client.said[:] = begun
    client.say("Go right.", "Right it is.", told, **given)  # an edit
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    picture["image_url"]["detail"] = "auto"  # type: ignore[index]
    shown: Any = {"role": "user", "content": [{"type": "text", "text": "What is on it?"}, picture]}
    call = Reply(tool_calls=[Call("edit_file", {"a": 1}, "call_7")])
    client.send(call, 60, messages=[told, *client.said, shown], **given)
    function = {"name": "edit_file", "arguments": '{"a": 1}'}
    called = {"id": "call_7", "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": "call_7", "name": "edit_file", "content": "done"}
    asked = [shown, {"role": "assistant", "content": "", "tool_calls": [called]}, result]
    answer = client.send(Reply("A dot."), 1, messages=[told, *client.said, *asked], **given)
    assert answer == "A dot."
    wanted = [(m["role"], m["content"]) for m in client.said]
    wanted += [("user", "What is on it?"), ("assistant", ""), ("tool", "done")]
    kept = [(m["role"], m["content"]) for m in remembered(tmp_path, graph, "65675e24")]
    assert kept == [*wanted, ("assistant", "A dot.")]


def find_unnamed(folder: Path, graph: Graph) -> str:
    """The session of the talk, which its client named in no way: it is not alone."""
    there = [name for name in FileStorage(folder).sessions() if not name.endswith(SIDE_SUFFIX)]
    first = {name: remembered(folder, graph, name)[0]["content"] for name in there}
    (found,) = (name for name, content in first.items() if content == SAID[0][0])
    return found
