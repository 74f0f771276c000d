"""The chat records that a reflection reads: what was really said.

Native records come from the session's transcript, which stores originals and nothing else, neither
notes nor prompts; external ones come from the application.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field, StrictBool, ValidationError

from topicloom.reflection.due import ReflectionPolicy
from topicloom.state.rounds import group_rounds
from topicloom.state.safe_text import clip, digest_text
from topicloom.state.stored_message import StoredMessage, parse_iso_seconds

_SPOKEN = ("user", "assistant")
_MILLISECONDS = 1e11
"""From here on a number is milliseconds: as seconds it would be the year 5138."""
_NAMED = 5


@dataclass(frozen=True, slots=True)
class ChatRecords:
    """The messages that a reflection reads."""

    messages: tuple[StoredMessage, ...]
    """User and assistant messages, oldest first; external ones are numbered from 1."""
    ids: Mapping[str, str]
    """The lasting id of each, by short id: itself for native records."""
    source: Literal["native", "external"]
    reports: tuple[str, ...] = ()
    """Why external records could not be used, a sentence for each that is malformed."""


def _name_sender(given: object) -> str:
    """The name of a sender; chat platforms have numbers for them."""
    if given is None or (isinstance(given, str | int) and not isinstance(given, bool)):
        return "" if given is None else str(given)
    raise ValueError("a name or a number is needed")


def _read_time(given: object) -> float:
    seconds = parse_timestamp(given)
    if seconds is None:
        raise ValueError("it is no time")
    return seconds


class _ExternalRecord(BaseModel, frozen=True):
    """An external record that is well formed."""

    role: Literal["user", "assistant", "tool", "system"]
    sender: Annotated[str, BeforeValidator(_name_sender)] = Field(
        default="", validation_alias=AliasChoices("sender_id", "sender")
    )
    seconds: Annotated[float, BeforeValidator(_read_time)] = Field(
        validation_alias=AliasChoices("timestamp", "time")
    )
    text: str = Field(pattern=r"\S", validation_alias=AliasChoices("content", "text"))
    processed: StrictBool = Field(validation_alias="is_processed")
    given_id: Any = Field(default="", validation_alias="id")

    @property
    def key(self) -> tuple[str, str, float, str]:
        return self.role, self.sender, self.seconds, self.text

    @property
    def id(self) -> str:
        """The application's id; a hash of what was said where it gives none."""
        given = self.given_id if isinstance(self.given_id, str) else ""
        return given or f"x{digest_text(json.dumps(self.key), 12)}"


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
            milliseconds since the epoch), `is_processed`, and maybe `sender_id` and `id`;
            `sender`, `time` and `text` will do too. None for no external records.
        native: What the transcript holds since the last reflection.
    """
    given, reports = ([], []) if external is None else _read_external(external)
    chosen = [] if reports else _choose_external(given)
    if chosen:
        messages = tuple(_to_stored_message(seq, one) for seq, one in enumerate(chosen, 1))
        ids = {m.id: one.id for m, one in zip(messages, chosen, strict=True)}
        return ChatRecords(messages, ids, "external")
    if external is not None and not reports:
        reports = ["chat_records hold nothing that was processed and no new message of the user"]
    return ChatRecords(tuple(native), {m.id: m.id for m in native}, "native", tuple(reports))


def _is_open(round_: Sequence[StoredMessage], now: float, policy: ReflectionPolicy) -> bool:
    said_at = parse_iso_seconds(round_[-1].time)
    waiting = said_at is not None and abs(now - said_at) < policy.idle_seconds
    return waiting and all(r.role == "user" for r in round_)


def _choose_external(given: Sequence[_ExternalRecord]) -> list[_ExternalRecord]:
    spoken = sorted((g for g in given if g.role in _SPOKEN), key=lambda g: g.seconds)
    fresh = [g for g in spoken if g.role == "user" and not g.processed][-1:]
    once = {g.key: g for g in (*fresh, *(g for g in spoken if g.processed))}
    return sorted(once.values(), key=lambda g: g.seconds)


def _read_external(external: object) -> tuple[list[_ExternalRecord], list[str]]:
    if not isinstance(external, Sequence) or isinstance(external, str | bytes):
        return [], [f"chat_records are no list but {type(external).__name__!r}"]
    read, flaws = list[_ExternalRecord](), list[str]()
    for number, one in enumerate(external, 1):
        try:
            read.append(_ExternalRecord.model_validate(one))
        except ValidationError as error:
            flaw = error.errors(include_url=False, include_input=False)[0]
            place = ": ".join([f"chat record {number}", *map(str, flaw["loc"])])
            flaws.append(clip(f"{place}: {flaw['msg']}"))
    more = len(flaws) - _NAMED
    named = [*flaws[:_NAMED], *([f"{more} more chat records are malformed"] if more > 0 else [])]
    return read, named


def parse_timestamp(time: object) -> float | None:
    """Seconds since the epoch of a time as chat platforms write it; None if it is none.

    That is ISO 8601 (UTC where it names no zone), or seconds or milliseconds since the epoch, as a
    number or as its digits.
    """
    if isinstance(time, str):
        digits = time.strip()
        if len(digits) < 9 or not digits.replace(".", "", 1).isdecimal():
            return _within_utc(parse_iso_seconds(digits))
        return parse_timestamp(float(digits))
    if isinstance(time, bool) or not isinstance(time, int | float):
        return None
    try:
        seconds = float(time)
    except OverflowError:
        return None
    return _within_utc(seconds / 1_000 if abs(seconds) >= _MILLISECONDS else seconds)


def _within_utc(seconds: float | None) -> float | None:
    """The same; None for none, and for a time that UTC does not have."""
    try:
        if seconds is not None:
            datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return seconds


def _to_stored_message(seq: int, one: _ExternalRecord) -> StoredMessage:
    time = datetime.fromtimestamp(one.seconds, UTC).isoformat()
    role = cast("Literal['user', 'assistant']", one.role)
    return StoredMessage(seq=seq, role=role, text=one.text, time=time, speaker=one.sender or None)
