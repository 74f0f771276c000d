"""What a client asks for itself is no part of what was said, and no first message is lost to that.

The shapes are those of five clients as their public repositories have them, in words of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from endpoints import Message, Talk, talking
from sessions import prompt_of
from tables import each_row

from topicloom_app.serve.side_calls import (
    Newest,
    is_side_call,
    is_side_call_about,
    is_side_call_behind,
    quotes,
    was_side_call,
)
from topicloom_app.serve.turns import TurnRequest

ASKED = "My sister Ida moves to Ghent on 3 May."
REPLIED = "Noted: Ida moves to Ghent on 3 May. Shall I remind you?"


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    with talking(tmp_path) as opened:
        yield opened


@dataclass
class Client:
    """A client as it asks: for the next reply, and for itself."""

    talk: Talk
    options: dict[str, Any]
    system: str = ""
    said: list[Message] = field(default_factory=list)

    def say(self, text: str, reply: str) -> None:
        """What a person says, a while after the reply before."""
        self.talk.waited[0] = timedelta(minutes=3)
        self.talk.responder.script.append(reply)
        told = [{"role": "system", "content": self.system}] if self.system else []
        asked: list[Any] = [*told, *self.said, {"role": "user", "content": text}]
        parts = self.talk.client.chat.completions.create(
            model="topicloom", messages=asked, stream=True, **self.options
        )
        whole = "".join(part.choices[0].delta.content or "" for part in parts)
        assert whole == reply
        self.said += [asked[-1], {"role": "assistant", "content": whole}]

    def ask(self, *messages: Message, seconds: float = 0.1) -> None:
        """What the client asks, some seconds behind the reply."""
        self.talk.waited[0] = timedelta(seconds=seconds)
        self.talk.responder.script.append("Ida in Ghent")
        asked: list[Any] = [*messages]
        self.talk.client.chat.completions.create(
            model="topicloom", messages=asked, stream=False, **self.options
        )

    def lay_out(self, you: str = "User", it: str = "AI") -> str:
        """The conversation as a text."""
        names = {"user": you, "assistant": it}
        return "\n".join(f"{names[m['role']]}: {m['content']}" for m in self.said)


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def like_librechat(client: Client) -> None:
    """A user's name; the title in one message, with the talk in it."""
    client.ask(user(f"Give a title of five words at most.\n\n{client.lay_out()}"))


def like_open_webui(client: Client) -> None:
    """A chat's id; what to ask next, a title and tags, one after the other."""
    talk = client.lay_out("USER", "ASSISTANT")
    for number, task in enumerate(("three questions to ask next", "a title", "tags")):
        asked = f"### Task:\nWrite {task}.\n<chat_history>\n{talk}\n</chat_history>"
        client.ask(user(asked), seconds=0.1 + number)


def like_nextchat(client: Client) -> None:
    """The whole conversation and a question behind it, unlike the talk without instructions."""
    client.ask(*client.said, user("Sum our talk up in four words, as a title."))


def like_lobechat(client: Client) -> None:
    """Instructions of their own, and the talk in a message."""
    told: Message = {"role": "system", "content": "You name conversations in ten letters."}
    client.ask(told, user(f"{client.lay_out('user', 'assistant')}\n\nName this conversation."))


def like_betterchatgpt(client: Client) -> None:
    """The newest two messages, cut in their middle, between marks."""
    asked, replied = (m["content"] for m in client.said[-2:])
    replied = f"{replied[:100]} ... {replied[-100:]}"
    client.ask(user(f'A title, please:\n"""\nUser: {asked}\nAssistant: {replied}\n"""'))


CLIENTS: list[tuple[Callable[[Client], None], dict[str, Any], str]] = [
    (like_librechat, {"user": "u1"}, ""),
    (like_open_webui, {"extra_headers": {"X-OpenWebUI-Chat-Id": "u1"}}, ""),
    (like_nextchat, {"user": "u1"}, "You are a helpful assistant. The time is 9:00."),
    (like_nextchat, {"extra_headers": {"X-Chat-Id": "u1"}}, "You are a helpful assistant."),
    (like_lobechat, {"user": "u1"}, "You are a poet."),
    (like_betterchatgpt, {"user": "u1"}, ""),
    (like_betterchatgpt, {"extra_headers": {"X-Chat-Id": "u1"}}, ""),
]


@pytest.mark.slow
@pytest.mark.parametrize(("asks", "options", "system"), CLIENTS)
def test_only_what_a_person_said_is_in_the_session(
    talk: Talk, asks: Callable[[Client], None], options: dict[str, Any], system: str
) -> None:
    client = Client(talk, options, system)
    client.say(ASKED, REPLIED)
    asks(client)
    assert talk.remembered("u1") == client.said
    client.say("Who moves, and where to? Tell me in a long sentence, please.", "Ida, to Ghent.")
    asks(client)
    assert talk.remembered("u1") == client.said
    client.say("And when?", "On 3 May.")
    assert talk.remembered("u1") == client.said
    assert "Ida in Ghent" not in prompt_of(talk.responder.requests[-1])


@pytest.mark.slow
def test_a_search_that_is_prepared_before_the_first_message(talk: Talk) -> None:
    """Open WebUI asks what to look for before it sends the message itself."""
    client = Client(talk, {"extra_headers": {"X-OpenWebUI-Chat-Id": "u1"}})
    for text, reply in ((ASKED, REPLIED), ("Who moves?", "Ida.")):
        before = client.lay_out("USER", "ASSISTANT")
        client.ask(user(f"### Task:\nWhat to look for?\n{before}\nUSER: {text}"))
        client.talk.waited[0] = timedelta(seconds=0.1)
        client.say(text, reply)
        assert talk.remembered("u1") == client.said


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"user": "u1"}, {"extra_headers": {"X-Chat-Id": "u1"}}])
@pytest.mark.parametrize("seconds", [0.1, 60.0])
def test_no_first_message_is_lost(talk: Talk, options: dict[str, Any], seconds: float) -> None:
    """A person may quote what was said last, even at once: who goes on with it is none."""
    client = Client(talk, options)
    client.say(ASKED, REPLIED)
    first = user(f"I said “{ASKED}” and you said “{REPLIED}” Is that right?")
    talk.responder.script += ["It is.", "Well."]
    talk.waited[0] = timedelta(seconds=seconds)
    said = talk.ask([], first["content"], **options)
    talk.waited[0] = timedelta(minutes=1)
    said = talk.ask(said, "Good. And now the oven.", **options)
    assert talk.remembered("u1")[-4:] == said


@pytest.mark.slow
def test_another_chat_of_a_user_is_one_at_any_speed(talk: Talk) -> None:
    client = Client(talk, {"user": "u1"})
    client.say(ASKED, REPLIED)
    talk.waited[0] = timedelta(0)
    said = talk.ask([], "What is the oven for?", user="u1")
    assert talk.remembered("u1") == [*client.said, *said]
    # Another one that quotes its own message alone is a person's too.
    again = talk.ask([], "What is the oven for? And the hob?", user="u1")
    assert talk.remembered("u1") == [*client.said, *said, *again]


@each_row(
    ("text", "quoted"),
    [
        (f"Title: {ASKED} {REPLIED}", True),
        (f"{ASKED.upper()}\\n\\n**{REPLIED}**", True),
        ('{"said": "My sister Ida\\u0020moves"}', False),
        (f"Title: {ASKED}", False),
        (ASKED + REPLIED, False),
    ],
)
def test_a_side_call_is_told_by_what_it_quotes(text: str, quoted: bool) -> None:
    assert quotes(text, ASKED, REPLIED) is quoted


def test_short_words_are_no_quotes() -> None:
    assert not quotes("Yes, I am ok with that, go on please.", "ok", "Yes.")
    assert quotes(
        "标题：妹妹伊达五月三日搬到根特——好的，记住了。",
        "妹妹伊达五月三日搬到根特",
        "好的，记住了。",
    )


def test_a_question_that_came_before_the_reply_had_ended() -> None:
    newest = Newest(ASKED, "Not", "talk", streamed=True, instructed=False, seconds=-2.0)
    turn = TurnRequest(
        session="u", complete=False, model="m", messages=(), instructions="Name this."
    )
    assert is_side_call(turn, f"Name it: {ASKED}", newest)
    assert not is_side_call(turn, "What about the oven?", newest)


def ask_behind(**changes: Any) -> TurnRequest:
    """A turn that is asked as the talk is, but for some changes."""
    tools: Any = ({"type": "function", "function": {"name": "f"}},)
    given = {"model": "m", "messages": (), "instructions": "Be brief.", "tools": tools}
    return TurnRequest(**{**given, "stream": True, **changes})


@each_row(
    ("changes", "seconds", "is_one"),
    [
        ({"tools": (), "stream": False}, 1.0, True),
        ({"tools": (), "instructions": ""}, 1.0, True),
        # A person may change all of it, but not so fast and not all of it at once.
        ({"tools": (), "instructions": ""}, 6.0, False),
        ({"tools": ()}, 1.0, False),
        ({"model": "other"}, 1.0, False),
        ({"instructions": "Be long. It is 9:01."}, 1.0, False),
        ({"stream": False}, 1.0, False),
        ({"instructions": "", "stream": False}, 1.0, False),
    ],
)
def test_what_comes_at_once_behind_a_talk(
    changes: dict[str, Any], seconds: float, is_one: bool
) -> None:
    manner = ask_behind().manner
    newest = Newest(ASKED, REPLIED, manner, streamed=True, instructed=True, seconds=seconds)
    assert is_side_call_behind(ask_behind(**changes), newest) is is_one


def test_a_reply_that_is_continued_is_no_question_about_it() -> None:
    manner = ask_behind().manner
    newest = Newest(ASKED, REPLIED, manner, streamed=True, instructed=True, seconds=1.0)
    about = ask_behind(begun=REPLIED, instructions="Draw it.")
    assert is_side_call_about(about, ASKED, newest)
    assert not is_side_call_about(ask_behind(begun=REPLIED), ASKED, newest)
    assert not is_side_call_about(replace(about, begun=REPLIED[:9]), ASKED, newest)
    assert not is_side_call_about(about, "Something else", newest)


def test_a_search_that_was_prepared_is_known_by_the_message_that_comes_then() -> None:
    prepared = Newest(f"Look for: {ASKED}", "Ida", "search", False, instructed=True, seconds=0.1)
    assert was_side_call(ask_behind(), ASKED, prepared)
    assert not was_side_call(ask_behind(), "What about the oven?", prepared)
    assert not was_side_call(ask_behind(), ASKED, replace(prepared, seconds=9.0))
    assert not was_side_call(ask_behind(), ASKED, replace(prepared, streamed=True))
    assert not was_side_call(ask_behind(), ASKED, replace(prepared, manner=ask_behind().manner))
