"""Messages as every provider takes them: who says them, and in what order.

A prompt begins with the user. Calls are followed by their results, one each and at once. No reply
is empty, and nothing but the instructions before all others is a system message.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    BaseMessageChunk,
    HumanMessage,
    ToolMessage,
    message_chunk_to_message,
)

from topicloom.prompts.wording import get_wording
from topicloom.state.content_blocks import REFUSAL
from topicloom.state.language import Language
from topicloom.state.messages import has_content, says_something
from topicloom.state.stored_message import StoredMessage, get_text

_UNSENDABLE = re.compile(r"[\s<|\\/>]+")
_NO_TOOL_NAME = re.compile(r"[^\w.:-]+", re.ASCII)
_LONGEST_TOOL_NAME = 64
"""Characters that providers take of the name of a tool."""
_OF_CALLS = ("reasoning_content", "__gemini_function_call_thought_signatures__")
"""What providers ask back with calls whatever else a reply says; no part of what it says."""


def sanitize_name(message: AnyMessage) -> AnyMessage:
    """The message under a name that providers take: OpenAI refuses blanks and `<|\\/>` in one."""
    if message.name is None or not _UNSENDABLE.search(message.name):
        return message
    return message.model_copy(update={"name": _UNSENDABLE.sub("_", message.name)})


def to_common_kind(message: AnyMessage, stored: StoredMessage) -> AnyMessage:
    """The message as one of the user, the model or a tool: all clients know these.

    A system message that stands among others is the user's, in a block that says who wrote it.
    """
    if isinstance(message, BaseMessageChunk):
        message = cast("AnyMessage", message_chunk_to_message(message))
    content = message.content
    if isinstance(content, list) and any(isinstance(part, str) for part in content):
        # LangChain allows plain texts among blocks; not all of its clients do.
        blocks = [{"type": "text", "text": p} if isinstance(p, str) else p for p in content]
        message = message.model_copy(update={"content": blocks})
    if isinstance(message, AIMessage):
        return _restore_version(message)
    if isinstance(message, HumanMessage | ToolMessage):
        return message
    given: dict[str, Any] = {"content": message.content, "name": message.name, "id": message.id}
    if stored.role == "assistant":
        return AIMessage(**given)
    if stored.role != "system":
        return HumanMessage(**given)
    return HumanMessage(f"<system_message>\n{get_text(message)}\n</system_message>", id=message.id)


def _restore_version(message: AIMessage) -> AIMessage:
    """A reply whose content is in LangChain's form, and says so: its calls are in it.

    Clients may leave out what says that.
    """
    metadata = message.response_metadata
    blocks = message.content if isinstance(message.content, list) else []
    if metadata.get("output_version") or not any(
        isinstance(b, dict) and b.get("type") == "tool_call" for b in blocks
    ):
        return message
    return message.model_copy(update={"response_metadata": {**metadata, "output_version": "v1"}})


def say_anew(reply: AIMessage, text: str, calls: Mapping[str, Any] | None = None) -> AIMessage:
    """A reply with another text: nothing of what its provider bound to the former one stays.

    Reasoning is taken back with the very words that followed it, or not at all, and so are ids.
    `calls` has the calls, where they change too.
    """
    kept = {k: v for k, v in reply.additional_kwargs.items() if k in _OF_CALLS}
    if not (reply.tool_calls or reply.invalid_tool_calls):
        kept = {}
    refused = isinstance(reply.content, list) and any(
        isinstance(block, dict) and block.get("type") == REFUSAL for block in reply.content
    )
    content = [{"type": REFUSAL, REFUSAL: text}] if refused else text
    update = {"content": content, "additional_kwargs": kept, "response_metadata": {}}
    return reply.model_copy(update=update | dict(calls or {}))


def order_messages(messages: Sequence[BaseMessage], language: Language) -> list[BaseMessage]:
    """Messages in an order that every provider takes.

    A call without a result, or with an empty one, gets a result that says so. A result that nothing
    called for, or a second one, becomes a message of the user.
    """
    words = get_wording(language)
    results = _Results(messages)
    ordered, used = list[BaseMessage](), Counter[str]()
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if place not in results.taken:
                said = message.content if says_something(message) else words.cut_off
                ordered.append(HumanMessage(said))
        elif not isinstance(message, AIMessage):
            ordered += [message] if has_content(message) else []
        elif message.tool_calls or message.invalid_tool_calls:
            reply = _name_calls(message, used)
            ordered.append(reply)
            for given, sent in zip(_list_ids(message), reply.tool_calls, strict=True):
                result = results.take(given, place)
                ordered.append(_make_result(result, sent, words.cut_off))
        elif says_something(message):
            ordered.append(message)
    if ordered and isinstance(ordered[0], AIMessage):
        ordered.insert(0, HumanMessage(words.reply_first))
    return ordered


def _make_result(result: ToolMessage | None, call: Mapping[str, Any], missing: str) -> ToolMessage:
    if result is None:
        return ToolMessage(missing, tool_call_id=call["id"], name=call["name"])
    if result.tool_call_id == call["id"]:
        return result
    return result.model_copy(update={"tool_call_id": call["id"]})


class _Results:
    """The results among messages, by the calls that they are of.

    What comes behind the next reply is no result of an earlier one's calls: that reply was asked
    for without it, and prompts only grow at their ends.
    """

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self.taken = set[int]()
        """Places of those that a call has."""
        self._given = defaultdict[tuple[int, str], deque[tuple[int, ToolMessage]]](deque)
        """By the place of the reply before them and the id of the call: their places, and they."""
        reply = -1
        for place, message in enumerate(messages):
            if isinstance(message, AIMessage):
                reply = place
            elif isinstance(message, ToolMessage):
                self._given[reply, message.tool_call_id].append((place, message))

    def take(self, id_: str, reply: int) -> ToolMessage | None:
        """The next result of the calls under an id of the reply at a place; None if there is none.

        Two calls of a reply may have one id.
        """
        given = self._given.get((reply, id_))
        if not given:
            return None
        place, result = given.popleft()
        self.taken.add(place)
        return result


def _list_ids(message: AIMessage) -> list[str]:
    return [c["id"] or "" for c in (*message.tool_calls, *message.invalid_tool_calls)]


def _name_calls(message: AIMessage, used: Counter[str]) -> AIMessage:
    """The reply with calls that can be sent: each has a name, an id of its own, and arguments.

    What a model garbled is sent as a text: a client leaves such a call out, but not its result.
    """
    calls: list[dict[str, Any]] = [{**call} for call in message.tool_calls]
    calls += [
        {"name": c["name"], "args": {"arguments": c["args"] or ""}, "id": c["id"]}
        for c in message.invalid_tool_calls
    ]
    changed = bool(message.invalid_tool_calls)
    renamed = False
    for call in calls:
        id_, name = _find_free(call["id"] or "call", used), _clean_tool_name(call["name"])
        renamed = renamed or id_ != call["id"] or name != call["name"]
        call.update(id=id_, name=name, type="tool_call")
    if renamed:
        return say_anew(message, get_text(message), {"tool_calls": calls, "invalid_tool_calls": []})
    if changed:
        return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})
    return message


def _find_free(id_: str, used: Counter[str]) -> str:
    """An id that none of the `used` is, which are counted; it is one of them from now on."""
    name = id_
    while used[name]:
        used[id_] += 1
        name = f"{id_}-{used[id_]}"
    used[name] += 1
    return name


def _clean_tool_name(name: str | None) -> str:
    return _NO_TOOL_NAME.sub("_", name or "")[:_LONGEST_TOOL_NAME] or "unknown"
