"""What is left of a message that was purged, and how it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topicloom.state.records import REMOVED, Record
from topicloom.storage.chain import PURGED

_FRAME = ("type", "role", "id", "tool_call_id", "status")
"""What stays of a message that text alone would not give back."""


def shell_of(record: Record) -> dict[str, Any]:
    """What stays of a message: who spoke and when, and which tool calls its results belong to.

    Without these a conversation falls apart: exchanges are found by who spoke, and providers
    refuse results without calls. Names of people, arguments of calls and all texts go.
    """
    stays = record.model_dump(
        mode="json", include={"seq", "role", "time", "source", "opens"}, exclude_defaults=True
    )
    frame = {} if record.whole is None else {"whole": _frame(record.whole)}
    return {"id": record.id} | stays | frame


def record_in(row: Mapping[str, Any]) -> Record:
    """The record in a row of the transcript or of a topic; of a purged one, with its text away."""
    return Record.model_validate({**row, "text": REMOVED} if PURGED in row else row)


def row_of(record: Record) -> dict[str, Any]:
    """The row of a record."""
    return {"id": record.id} | record.model_dump(mode="json", exclude_defaults=True)


def _frame(whole: Mapping[str, Any]) -> dict[str, Any]:
    calls = [
        {"name": call.get("name", ""), "args": {}, "id": call.get("id"), "type": "tool_call"}
        for call in whole.get("tool_calls", ())
    ]
    frame = {key: whole[key] for key in _FRAME if key in whole}
    # The name of a function is asked for by LangChain; other names may be those of people.
    named = {"name": whole["name"]} if whole.get("type") == "function" else {}
    return frame | named | ({"tool_calls": calls} if calls else {}) | {"content": REMOVED}
