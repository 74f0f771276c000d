"""The chat records that a reflection reads: what was really said.

Native records come from the session's transcript, which stores originals and nothing else, neither
notes nor prompts; external ones come from the application.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, BaseModel, Field, StrictBool, TypeAdapter, ValidationError

from topicloom.reflection.due import ReflectionPolicy
from topicloom.state.rounds import group_rounds
from topicloom.state.safe_text import digest_text
from topicloom.state.stored_message import StoredMessage, parse_iso_seconds

_SPOKEN = ("user", "assistant")
_NAMED = 5
"""Faults of external records that are reported one by one."""


@dataclass(frozen=True, slots=True)
class ChatRecords:
    """The messages that a reflection reads."""

    messages: tuple[StoredMessage, ...]
    """User and assistant messages, oldest first; external ones are numbered from 1."""
    ids: Mapping[str, str]
    """The lasting id of each, by short id: itself for native records."""
    source: Literal["native", "external"]
    reports: tuple[str, ...] = ()
    """Faults of external records that could not be used, a sentence each."""


def _to_utc(time: datetime) -> datetime:
    try:
        return time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    except OverflowError as error:
        raise ValueError("UTC does not have this time") from error


class _ExternalRecord(BaseModel, frozen=True, coerce_numbers_to_str=True):
    """An external record that is well formed."""

    role: Literal["user", "assistant", "tool", "system"]
    content: str = Field(pattern=r"\S")
    timestamp: Annotated[datetime, AfterValidator(_to_utc)]
    is_processed: StrictBool
    sender_id: str | None = None
    id: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.role, self.sender_id or "", self.timestamp.isoformat(), self.content

    @property
    def lasting_id(self) -> str:
        """The application's id; a hash of what was said where it gives none."""
        return self.id or f"x{digest_text(json.dumps(self.key), 12)}"

    def to_stored_message(self, seq: int) -> StoredMessage:
        """The record as a message of that number; only for one of the user or the assistant."""
        return StoredMessage(
            seq=seq,
            role=cast("Literal['user', 'assistant']", self.role),
            text=self.content,
            time=self.timestamp.isoformat(),
            speaker=self.sender_id or None,
        )


_RECORDS = TypeAdapter(list[_ExternalRecord])


def select_native(
    messages: Sequence[StoredMessage], now: float, policy: ReflectionPolicy
) -> tuple[list[StoredMessage], StoredMessage | None]:
    """The part of what is unread that the next reflection reads, in whole rounds.

    A newest round without a reply is left for the next time while it may still be answered.

    Returns:
        The messages of user and assistant, and the last message that this covers; None if
        nothing is to be read yet.
    """
    rounds = group_rounds(messages)
    if rounds and _is_open(rounds[-1].messages, now, policy):
        rounds.pop()
    taken: list[StoredMessage] = []
    for round_ in rounds:
        if taken and len(taken) + len(round_.messages) > policy.messages:
            break
        taken += round_.messages
    said = [r for r in taken if r.role in _SPOKEN and r.text.strip()]
    return said, taken[-1] if taken else None


def choose_chat_records(external: object, native: Sequence[StoredMessage]) -> ChatRecords:
    """The external records if there are any and they are well formed, else the native ones.

    Of the external ones: those with `is_processed`, and the newest message of the user without;
    none twice by role, sender, time and content; in order of time.

    Args:
        external: A list of mappings with `role`, `content`, `timestamp` (ISO 8601, or seconds or
            milliseconds since the epoch), `is_processed`, and maybe `sender_id` and `id`. None
            for no external records.
        native: What the transcript holds since the last reflection.
    """
    reports: list[str] = []
    if external is not None:
        try:
            chosen = _choose_external(_RECORDS.validate_python(external))
        except ValidationError as error:
            reports = _describe_faults(error)
        else:
            if chosen:
                messages = tuple(r.to_stored_message(seq) for seq, r in enumerate(chosen, 1))
                ids = {m.id: r.lasting_id for m, r in zip(messages, chosen, strict=True)}
                return ChatRecords(messages, ids, "external")
            reports = ["chat_records hold nothing that was processed and no new message of a user"]
    return ChatRecords(tuple(native), {m.id: m.id for m in native}, "native", tuple(reports))


def _is_open(round_: Sequence[StoredMessage], now: float, policy: ReflectionPolicy) -> bool:
    said_at = parse_iso_seconds(round_[-1].time)
    waiting = said_at is not None and abs(now - said_at) < policy.idle_seconds
    return waiting and all(r.role == "user" for r in round_)


def _choose_external(given: Sequence[_ExternalRecord]) -> list[_ExternalRecord]:
    spoken = sorted((g for g in given if g.role in _SPOKEN), key=lambda g: g.timestamp)
    fresh = [g for g in spoken if g.role == "user" and not g.is_processed][-1:]
    once = {g.key: g for g in (*fresh, *(g for g in spoken if g.is_processed))}
    return sorted(once.values(), key=lambda g: g.timestamp)


def _describe_faults(error: ValidationError) -> list[str]:
    faults = []
    for fault in error.errors(include_input=False, include_url=False):
        place = fault["loc"]
        record = f"chat record {int(place[0]) + 1}" if place else "chat_records"
        faults.append(": ".join([record, *map(str, place[1:]), fault["msg"]]))
    more = len(faults) - _NAMED
    return [*faults[:_NAMED], *([f"{more} more faults in chat records"] if more > 0 else [])]
