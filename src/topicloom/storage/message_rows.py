"""Messages as rows of the transcript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage

from topicloom.state.stored_message import MARKS, REMOVED, StoredMessage, to_stored_message
from topicloom.storage.chain import link

Row = Mapping[str, Any]


def from_row(row: Row) -> StoredMessage:
    """The message in a row of the transcript; of a purged one, with its text away.

    What was left of its text was no part of what was purged: it had only been rewritten by that.
    """
    return StoredMessage.model_validate({"text": REMOVED, **row})


def is_left_of(left: StoredMessage, prev: str | None, ref: str, message: BaseMessage) -> bool:
    """True if a message is the one of which purging left that, by its refs in the transcript.

    One that was given other words to be searched by is not recognised.
    """
    said = to_stored_message(message, seq=left.seq, time=left.time)
    marked = said.model_copy(update=left.model_dump(include=MARKS))
    return link(prev, to_row(marked)) == ref


def to_row(message: StoredMessage) -> dict[str, Any]:
    """The row of a message."""
    return {"id": message.id} | message.model_dump(mode="json", exclude_defaults=True)
