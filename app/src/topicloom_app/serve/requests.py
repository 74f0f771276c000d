"""What the requests of all protocols have in common: a turn is read from them in one way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from pydantic import Field

from topicloom import InputError
from topicloom.hosting import find_zone, get_text, replace_surrogates
from topicloom_app.serve.sent_messages import digest_histories
from topicloom_app.serve.turns import (
    SCOPE_HEADER,
    USER_HEADER,
    AnswerReference,
    HistoryMessage,
    TurnRequest,
    read_answer_id,
)
from topicloom_app.session_names import make_session_name

CHAT_HEADERS = (
    "x-topicloom-session",
    "x-openwebui-chat-id",
    "x-conversation-id",
    "x-chat-id",
    "x-session-id",
)
"""Headers by which clients name a chat, the first that is there counts."""
_METADATA = ("chat_id", "conversation_id", "session_id")
"""The same in a request's `metadata`."""


RECORD_HEADER = "x-topicloom-record"
"""`true` has a request recorded that asks for `store: false`."""
ZONE_HEADER = "x-topicloom-timezone"
"""Where the user is: `Europe/Paris`."""
_KEY, _RETRY = "idempotency-key", "x-stainless-retry-count"
"""Headers by which clients tell a request that is sent again from a new one: its name, and how
often it was sent before."""
INSTRUCTING = ("system", "developer")
"""Roles whose messages are instructions, in OpenAI's protocols."""


def place_turn(
    turn: TurnRequest,
    headers: Mapping[str, str],
    metadata: Mapping[str, Any] | None,
    user: str | None,
) -> TurnRequest:
    """The turn up to the newest message to answer, in the session that its client means.

    The session is that of the answer it goes on from. Otherwise it is the chat's if the client
    gives its id, or the user's. If nothing is named, the chat is recognised by its first message.

    Args:
        turn: As the request has it, without a session.
        headers: Headers of the request, in which a chat may be named.
        metadata: The request's, in which a chat may be named.
        user: Whose session it is, if no chat is named.

    Raises:
        InputError: There is nothing to answer.
        UnknownResponseError: The answer that it goes on from cannot be one of ours.
    """
    messages, begun = find_begun(turn.messages)
    person, scope = name_person(headers, turn.owner)
    turn = replace(turn, messages=messages, begun=begun, user_id=person, scope=scope)
    again = headers.get(_RETRY, "0") not in ("", "0")
    recorded = turn.recorded or headers.get(RECORD_HEADER, "").lower() == "true"
    zone = headers.get(ZONE_HEADER, "")
    turn = replace(turn, key=headers.get(_KEY, ""), again=again, recorded=recorded)
    turn = replace(turn, timezone=find_zone(zone).key if zone else "")
    if turn.previous:
        return replace(turn, session=read_answer_id(turn.previous)[0])
    given = [headers.get(name) for name in CHAT_HEADERS]
    given += [(metadata or {}).get(name) for name in _METADATA]
    chat = next((str(value) for value in given if value), "")
    if not (named := chat or user or ""):
        first = next((m for m in turn.messages if not isinstance(m, AnswerReference)), None)
        named = f"chat-{digest_histories([first] if first else [])[-1]}"
    session = name_session(named, turn.owner, person, scope)
    return replace(turn, session=session, complete=bool(chat or not user), named=bool(chat))


def make_form(
    tools: Sequence[object] | None,
    tool_choice: str | Mapping[str, Any] | None = None,
    response_format: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The form that a reply is to have, beyond what a model does by itself.

    Args:
        tools: Those of the request.
        tool_choice: As chat completions have it.
        response_format: As chat completions have it.

    Raises:
        InputError: A call is asked for, and there are no tools.
    """
    form: dict[str, Any] = {}
    if tool_choice not in (None, "auto", "none"):
        if not tools:
            raise InputError("tool_choice asks for a call, but the request has no tools")
        form["tool_choice"] = tool_choice
    if response_format and response_format["type"] != "text":
        form["response_format"] = response_format
    return form


def choose_function(name: str) -> dict[str, Any]:
    """The `tool_choice` of chat completions that asks for a call of one function."""
    return {"type": "function", "function": {"name": name}}


def join_texts(blocks: Sequence[Mapping[str, Any]]) -> Any:
    """The content of a message as one text, or as its blocks if one is no text."""
    if all(block.get("type") == "text" for block in blocks):
        return "\n".join(str(block.get("text", "")) for block in blocks)
    return blocks


def name_person(headers: Mapping[str, str], owner: str) -> tuple[str, str]:
    """The user and the scope that a request speaks for, "" for none. Of two keys, each has users of
    its own, as it has sessions."""
    user = headers.get(USER_HEADER, "")
    return own(user, owner) if user else "", headers.get(SCOPE_HEADER, "") if user else ""


def name_session(chat: str, owner: str, user: str, scope: str) -> str:
    """The session of what a client calls a chat."""
    named = make_session_name(chat)
    if user:  # two users may have chats of one name
        named = make_session_name(json.dumps([user, scope, named]))
    return own(named, owner)


def own(name: str, owner: str) -> str:
    """The name of a session or a user of a key among those of all keys."""
    return f"{owner}.{name}" if owner else name


def find_begun(messages: Sequence[HistoryMessage]) -> tuple[Sequence[HistoryMessage], str]:
    """The messages up to the newest one to answer, and the beginning of a reply to continue.

    A client whose last message is the assistant's asks for more of it.

    Raises:
        InputError: There is nothing to answer.
    """
    begun, last = "", messages[-1] if messages else None
    if isinstance(last, AIMessage) and not (last.tool_calls or last.invalid_tool_calls):
        begun, messages = get_text(last), messages[:-1]
        last = messages[-1] if messages else None
    if last is None or isinstance(last, AIMessage | AnswerReference):
        raise InputError("there is nothing to answer: the last message must be from the user")
    return messages, begun


def read_call(id_: str, name: str, arguments: Any) -> Any:
    """A call of a tool as LangChain has it; an invalid one if its arguments are no object."""
    try:
        read = load_json(arguments or "{}") if isinstance(arguments, str) else arguments
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
        return load_json(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the body is not JSON: {error}") from error


def load_json(text: str | bytes) -> Any:
    """What JSON says, in characters that UTF-8 can hold.

    JavaScript cuts texts within a character: then U+FFFD stands for the half. Raises `ValueError`
    or `RecursionError` for what is no JSON.
    """
    value = json.loads(text)
    written = json.dumps(value, ensure_ascii=False)
    mended = replace_surrogates(written)
    return value if mended == written else json.loads(mended)


Stop = Annotated[str, Field(min_length=1)]
"""A text before which a reply ends."""


def read_stop(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    """The texts before which a reply ends."""
    return (stop,) if isinstance(stop, str) else tuple(stop or ())
