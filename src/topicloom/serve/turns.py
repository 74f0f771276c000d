"""A turn as any client asks for it, whatever protocol it speaks, and as it is answered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call

from topicloom.errors import InputError
from topicloom.serve.digests import digest, digest_histories
from topicloom.state.receipt import Receipt
from topicloom.state.stored_message import get_text
from topicloom.storage.names import make_session_name

CHAT_HEADERS = (
    "x-topicloom-session",
    "x-openwebui-chat-id",
    "x-conversation-id",
    "x-chat-id",
    "x-session-id",
)
"""Headers by which clients name a chat, the first that is there counts."""
USER_HEADER, SCOPE_HEADER = "x-topicloom-user", "x-topicloom-scope"
"""Headers by which a key that may do so says who is talking, and in which scope."""
_METADATA = ("chat_id", "conversation_id", "session_id")
"""The same in a request's `metadata`."""


class UnknownResponseError(InputError):
    """A `previous_response_id`, or a reference to an item, that names nothing here."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A message that a client names by the id of the answer it was a part of."""

    id: str


Said = AnyMessage | Reference
"""A message of a client's history."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that a client asks for, with the session that it belongs to."""

    session: str
    whole: bool
    """True if its messages are all that the session is to know; False if one who only gives a
    user's name goes on where that user's session is, if they are new."""
    model: str
    messages: Sequence[Said]
    """The conversation as the client has it, or what is new behind `previous`."""
    instructions: str = ""
    tools: tuple[dict[str, Any], ...] = ()
    form: dict[str, Any] = field(default_factory=dict)
    """`TurnOptions.reply_form`."""
    stream: bool = False
    begun: str = ""
    """The beginning of a reply that is to be continued."""
    previous: str = ""
    """The id of the answer that it goes on from; "" if its messages say so."""
    recorded: bool = True
    """False if nothing of it is to be kept."""
    user_id: str = ""
    """Who is talking, as a key that may say so has it; "" for nobody."""
    scope: str = ""
    """The scope of that user."""
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
    turn: Turn
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


def name_session(
    turn: Turn,
    headers: Mapping[str, str],
    metadata: Mapping[str, Any] | None,
    user: str | None,
) -> Turn:
    """The turn in the session that its client means.

    That is the one of the answer that it goes on from, else a chat's, if the client gives its id,
    else its user's. What nobody named is known again by how it began.

    Raises:
        UnknownResponseError: The answer that it goes on from cannot be one of ours.
    """
    turn = _name_person(turn, headers)
    if turn.previous:
        return replace(turn, session=read_answer_id(turn.previous)[0])
    given = [headers.get(name) for name in CHAT_HEADERS]
    given += [(metadata or {}).get(name) for name in _METADATA]
    if chat := next((str(value) for value in given if value), ""):
        named, whole = make_session_name(chat), True
    elif user:
        named, whole = make_session_name(user), False
    else:
        first = next((m for m in turn.messages if not isinstance(m, Reference)), None)
        named, whole = f"chat-{digest_histories([first] if first else [])[-1]}", True
    if turn.user_id:  # two users may have chats of one name
        named = make_session_name(json.dumps([turn.user_id, turn.scope, named]))
    return replace(turn, session=f"{turn.owner}.{named}" if turn.owner else named, whole=whole)


def _name_person(turn: Turn, headers: Mapping[str, str]) -> Turn:
    """The turn with its user. Of two keys, each has users of its own, as it has sessions."""
    user = headers.get(USER_HEADER, "")
    owned = f"{turn.owner}.{user}" if user and turn.owner else user
    return replace(turn, user_id=owned, scope=headers.get(SCOPE_HEADER, "") if user else "")


def find_begun(messages: Sequence[Said]) -> tuple[Sequence[Said], str]:
    """The messages up to the newest one to answer, and the beginning of a reply to continue.

    A client whose last message is the assistant's asks for more of it.

    Raises:
        InputError: There is nothing to answer.
    """
    begun, last = "", messages[-1] if messages else None
    if isinstance(last, AIMessage) and not (last.tool_calls or last.invalid_tool_calls):
        begun, messages = get_text(last), messages[:-1]
        last = messages[-1] if messages else None
    if last is None or isinstance(last, AIMessage | Reference):
        raise InputError("there is nothing to answer: the last message has to be the user's")
    return messages, begun


def read_call(id_: str, name: str, arguments: Any) -> Any:
    """A call of a tool as LangChain has it; an invalid one if its arguments are no object."""
    try:
        read = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, dict):
        return tool_call(name=name, args=read, id=id_)
    return invalid_tool_call(name=name, args=str(arguments), id=id_, error="no JSON object")


def make_reply(content: Any, calls: Sequence[Any], name: str | None = None) -> AIMessage:
    """An assistant's message of a client's history, with the calls of `read_call`."""
    good = [call for call in calls if call["type"] == "tool_call"]
    bad = [call for call in calls if call["type"] != "tool_call"]
    return AIMessage(content, name=name, tool_calls=good, invalid_tool_calls=bad)


def parse_body(body: bytes) -> Any:
    """The JSON of a request's body.

    Raises:
        InputError: It is none.
    """
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is not JSON: {error}") from error


def write_answer_id(session: str, answer: str) -> str:
    """The name of an answer among those of all sessions; see `read_answer_id`."""
    return session.encode("utf-8", "surrogatepass").hex() + answer


def read_answer_id(text: str) -> tuple[str, str]:
    """The session and the answer that an id stands for.

    Raises:
        UnknownResponseError: It stands for none.
    """
    try:
        name = bytes.fromhex(text[:-_ANSWER]).decode("utf-8", "surrogatepass")
    except ValueError:
        name = ""
    if not name:
        raise UnknownResponseError(f"previous response or item {text!r} not found")
    return name, text[-_ANSWER:]


_ANSWER = 32
"""Hex digits that name an answer among those of its session."""
