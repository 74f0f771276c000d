"""What a run of a session graph is given, checked before LangGraph takes it in."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.constants import CONFIG_KEY_CHECKPOINTER
from langgraph.types import Command

from topicloom.errors import InputError, MissingThreadError, TopicLoomWarning, suggest
from topicloom.nodes.step import NO_THREAD
from topicloom.state.message_form import make_update_storable, read_messages, select_usable
from topicloom.state.messages import check_content
from topicloom.state.safe_text import replace_surrogates
from topicloom.texts import FilledText, join_texts


def check_input(
    given: Any,
    around: Mapping[str, Any],
    channels: Collection[str],
    check_document: Callable[[Any], Any],
) -> Any:
    """The input, its messages in a form that can be kept; refused if one has none.

    Of a graph around this one, only the newest is: it sends all that it keeps each time.

    Args:
        given: The input.
        around: What the caller and the graphs around it configure.
        channels: The channels of the session.
        check_document: Gives the input with its document as it can be kept.

    Raises:
        InputError: It cannot be used, or is certainly not what was meant.
    """
    way = FilledText('pass what is new as {"messages": [("user", "...")]}')
    if isinstance(given, str | Sequence | BaseMessage):
        raise InputError(
            "the session cannot take a {kind} as input: {way}", kind=type(given).__name__, way=way
        )
    if isinstance(given, Mapping) and given and given.keys().isdisjoint(channels):
        name = next(iter(map(str, given)))
        raise InputError(
            "the session has no input {name!r}: {way}{meant}",
            name=name,
            way=way,
            meant=suggest(name, ["messages"]),
        )
    said = given.update if isinstance(given, Command) else given
    values = check_document(said)
    messages = read_messages(values)
    if not (around.get("checkpoint_ns") and isinstance(given, Mapping)):
        kept = make_update_storable(values)
        check_content(messages)
        if kept is said:
            return given
        return replace(given, update=kept) if isinstance(given, Command) else kept
    usable, faults = select_usable(messages)
    if not faults and usable == messages:
        return values
    if faults:
        warn_of_left_out(faults)
    return {**values, "messages": usable}


def check_thread(data: object, around: Mapping[str, Any], checkpointer: object) -> None:
    """Warn if nothing keeps the thread of a run.

    Raises:
        MissingThreadError: It has none.
        InputError: Its name cannot be stored.
    """
    if not around.get("thread_id"):
        raise MissingThreadError(NO_THREAD)
    if replace_surrogates(thread := str(around["thread_id"])) != thread:
        raise InputError(
            "thread_id {thread!r} has half of a character, which cannot be stored", thread=thread
        )
    if not checkpointer and CONFIG_KEY_CHECKPOINTER not in around:
        warnings.warn(
            FilledText(
                "nothing keeps thread {thread!r}, and its next turn begins anew: compile the"
                " graph with checkpointer=local_checkpointer()",
                thread=thread,
            ),
            TopicLoomWarning,
            stacklevel=3,
        )
    elif checkpointer is None and around.get("checkpoint_ns") and isinstance(data, Mapping):
        warn_of_part(data.get("messages") or ())


def warn_of_part(messages: Sequence[object]) -> None:
    """Warn where a part of another graph, of which nothing is kept, is given an older talk."""
    if any(isinstance(m, AIMessage) and not m.tool_calls for m in messages):
        warnings.warn(
            "this session is a part of another graph, which keeps nothing of it: with every run, it"
            " takes the whole conversation in anew. Compile it with checkpointer=True",
            TopicLoomWarning,
            stacklevel=4,
        )


def warn_of_left_out(faults: Mapping[str, str]) -> None:
    """Warn of messages that a graph or an agent around a session keeps, and no turn can take in."""
    named = join_texts(
        FilledText("{id!r}: {fault}", id=id_, fault=fault) for id_, fault in faults.items()
    )
    warnings.warn(
        FilledText("left out of the session: {named}", named=named), TopicLoomWarning, stacklevel=4
    )


def warn_of_lost(count: int) -> None:
    """Warn of messages that a hook of others removed before they were kept."""
    warnings.warn(
        FilledText(
            "a hook of this agent removed {count} messages of the running turn, calls of tools or"
            " results, before TopicMiddleware kept them: they are in no topic and cannot be"
            " recalled. Trim what the model is sent in wrap_model_call, or the state in"
            " after_agent behind it",
            count=count,
        ),
        TopicLoomWarning,
        stacklevel=4,
    )
