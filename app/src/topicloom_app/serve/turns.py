"""A turn as any client asks for it, whatever protocol it speaks, and as it is answered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage

from topicloom import InputError, Receipt
from topicloom.hosting import digest, get_text

USER_HEADER, SCOPE_HEADER = "x-topicloom-user", "x-topicloom-scope"
"""Headers by which a key that may do so says who is talking, and in which scope."""


class UnknownResponseError(InputError):
    """The id of a response, or of an item of one, that names nothing here."""

    def __init__(self, id_: str) -> None:
        """For an id."""
        super().__init__(f"response or item {id_!r} not found")


@dataclass(frozen=True, slots=True)
class AnswerReference:
    """A message that a client names by the id of the answer it was a part of."""

    id: str


HistoryMessage = AnyMessage | AnswerReference
"""A message of a client's history."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A turn that a client asks for, with the session that it belongs to."""

    model: str
    messages: Sequence[HistoryMessage]
    """The conversation as the client has it, or what is new behind `previous`."""
    session: str = ""
    complete: bool = True
    """True if its messages are all that the session is to know; False if one who only gives a
    user's name goes on where that user's session is, if they are new."""
    instructions: str = ""
    tools: tuple[dict[str, Any], ...] = ()
    form: dict[str, Any] = field(default_factory=dict)
    """`TurnOptions.reply_form`."""
    tokens: int | None = None
    """Tokens of the reply at most."""
    stop: tuple[str, ...] = ()
    """Texts before which the reply ends."""
    stream: bool = False
    begun: str = ""
    """The beginning of a reply that is to be continued."""
    previous: str = ""
    """The id of the answer that it goes on from; "" if its messages say so."""
    recorded: bool = True
    """False if nothing of it is to be kept."""
    named: bool = False
    """True if its client gave the id of a chat."""
    key: str = ""
    """What the client calls this request, however often it sends it."""
    again: bool = False
    """True if the client says that it sends the request once more."""
    user_id: str = ""
    """Who is talking, as a key that may say so has it; "" for nobody."""
    scope: str = ""
    """The scope of that user."""
    timezone: str = ""
    """Where the user is, such as `Europe/Paris`."""
    usual_timezone: str = ""
    """Where the user of its key is."""
    owner: str = ""
    """Whose key it came with: only that one's sessions are found by an id."""
    id: str = field(default_factory=lambda: uuid4().hex)
    """Names its answer among those of its session."""

    @property
    def manner(self) -> str:
        """A digest of how it asks: other instructions, tools or models are another manner."""
        names = sorted(tool["function"]["name"] for tool in self.tools)
        return digest([self.instructions, names, self.model])

    @property
    def answer_id(self) -> str:
        """A name of its answer among all."""
        return write_answer_id(self.session, self.id)


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of a turn."""

    reply: AIMessage
    receipt: Receipt
    turn: TurnRequest
    """What was asked, in the session that it was answered in."""

    @property
    def text(self) -> str:
        """The words of the reply, behind those that the client has."""
        return get_text(self.reply).removeprefix(self.turn.begun)

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        """The id, the name and the arguments, as JSON, of each tool that the client is to run."""
        good = [
            (c["id"] or "", c["name"], json.dumps(c["args"], ensure_ascii=False))
            for c in self.reply.tool_calls
        ]
        bad = [
            (c["id"] or "", c["name"] or "", c["args"] or "") for c in self.reply.invalid_tool_calls
        ]
        return good + bad

    @property
    def cut(self) -> str:
        """The reason why the reply was cut off; "" if it is whole."""
        reason = self.reply.response_metadata.get("finish_reason")
        length = "length" if reason == "length" else ""
        return str(self.reply.additional_kwargs.get("cut", length))

    @property
    def tokens(self) -> Tokens:
        """What it cost."""
        calls = self.receipt.calls
        return Tokens(
            sum(call.input_tokens for call in calls),
            sum(call.output_tokens for call in calls),
            sum(call.cached_tokens for call in calls),
        )


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a turn cost, all roles together."""

    input: int
    output: int
    cached: int
    """Tokens of the input that providers had in their caches."""


Part = str | Answered
"""A piece of a reply, or the end of the turn."""


class Writer(Protocol):
    """Writes the answer to one request as its protocol has it."""

    def write_whole(self, answered: Answered) -> dict[str, Any]:
        """The answer in one piece."""
        ...

    def begin(self) -> str:
        """The events of a stream before the first piece."""
        ...

    def write_piece(self, text: str) -> str:
        """The events of a piece."""
        ...

    def end(self, answered: Answered) -> str:
        """The events behind the last piece."""
        ...

    def fail(self, status: int, message: str) -> str:
        """The last events of a stream that fails."""
        ...


def write_answer_id(session: str, answer: str) -> str:
    """The name of an answer among those of all sessions; see `read_answer_id`."""
    return session.encode().hex() + answer


def read_answer_id(text: str) -> tuple[str, str]:
    """The session and the answer that an id stands for.

    Raises:
        UnknownResponseError: It stands for none.
    """
    try:
        name = bytes.fromhex(text[:-_ANSWER]).decode()
    except ValueError:
        name = ""
    if not name:
        raise UnknownResponseError(text)
    return name, text[-_ANSWER:]


_ANSWER = 32
"""Hex digits that name an answer among those of its session."""
