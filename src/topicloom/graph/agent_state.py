"""What an agent's state says of its session, and which of its messages are new.

`TopicMiddleware` keeps the session under `topicloom` in the agent's own state, beside `messages`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langgraph.config import get_config
from langgraph.runtime import get_runtime

from topicloom.errors import ConfigurationError
from topicloom.graph.given import warn_of_left_out
from topicloom.nodes.activate_topic import ACTIVATE_TOPIC
from topicloom.nodes.runs import Run
from topicloom.state.identity import count_unchanged
from topicloom.state.message_form import select_usable
from topicloom.state.rounds import LOOK_BACK
from topicloom.state.session import Session, Turn


def read_turn(known: Mapping[str, Any]) -> tuple[Session, Turn]:
    """The session and the turn that an agent's state holds."""
    return Session.model_validate(known["session"]), Turn.model_validate(known["turn"])


def find_run(known: Mapping[str, Any]) -> tuple[Run, str | None]:
    """The run of the agent whose hook this is called in, and the checkpoint that it forks from."""
    info, named = get_runtime().execution_info, get_config()["metadata"].get("checkpoint_id")
    assert info is not None  # in a hook there is always one
    around = info.checkpoint_ns.rpartition("|")[0]
    fork = uuid4().hex if named and named != known.get("fork") else ""
    return Run(str(info.thread_id or ""), around, fork, time.time()), named


def take_over(
    state: Mapping[str, Any],
) -> tuple[dict[str, Any], list[AnyMessage], list[AnyMessage]]:
    """The session in an agent's state, and its messages in two parts.

    The first part is unchanged since the last turn. Only the second part is compared with what is
    stored. A summary that another middleware put into the place of messages is no message of the
    session; exception: in an agent that has no session yet.
    """
    known, messages = state.get("topicloom") or {}, state["messages"]
    cut = max(0, count_unchanged(messages, known.get("seen")) - LOOK_BACK)
    if summed_up := any(map(_is_summary, messages)):
        cut, plain = 0, {"additional_kwargs": dict[str, Any]()}
        said = (m.model_copy(update=plain) if _is_summary(m) else m for m in messages)
        messages = [m for m in messages if not _is_summary(m)] if known else list(said)
    if known and (summed_up or cut):
        # The messages do not show all, and what they lack was not removed.
        known = {**known, "session": {**known["session"], "shown": 0}}
    usable, faults = select_usable(messages[cut:])
    if faults:
        warn_of_left_out(faults)
    return known, messages[:cut], usable


def _is_summary(message: BaseMessage) -> bool:
    return message.additional_kwargs.get("lc_source") == "summarization"


def find_searches(messages: Sequence[BaseMessage]) -> list[Any]:
    """The calls of the newest reply for searches that were not refused."""
    asked = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
    if asked is None or messages[-1] is asked:
        return []
    done = {m.tool_call_id for m in messages if isinstance(m, ToolMessage) and m.status != "error"}
    return [c for c in asked.tool_calls if c["name"] == ACTIVATE_TOPIC and c["id"] in done]


def find_loop(messages: Sequence[AnyMessage], newest: str | None) -> Sequence[AnyMessage]:
    """What was said behind the newest stored message; raises if a summary stands for messages."""
    if any(map(_is_summary, messages)):
        raise ConfigurationError(
            "SummarizationMiddleware has put a summary into the place of what TopicMiddleware shows"
            " word for word: take it out of the agent's middleware"
        )
    places = [place for place, message in enumerate(messages) if message.id == newest]
    return messages[places[-1] + 1 :] if places else messages
