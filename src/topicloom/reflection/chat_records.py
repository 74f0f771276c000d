"""The chat records that a reflection reads: what was really said.

Native records come from the session's transcript, which stores originals and nothing else, neither
notes nor prompts; external ones come from the application.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, cast

from topicloom.reflection.due import ReflectionPolicy
from topicloom.state.rounds import group_rounds
from topicloom.state.safe_text import clip, digest_text
from topicloom.state.stored_message import StoredMessage, parse_iso_seconds

_SPOKEN = ("user", "assistant")
_OTHERS = ("tool", "system")
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


@dataclass(frozen=True, slots=True)
class _ExternalRecord:
    """An external record that is well formed."""

    role: str
    sender: str
    seconds: float
    text: str
    processed: bool
    given_id: str

    @property
    def key(self) -> tuple[str, str, float, str]:
        return self.role, self.sender, self.seconds, self.text

    @property
    def id(self) -> str:
        """The application's id; a hash of what was said where it gives none."""
        return self.given_id or f"x{digest_text(json.dumps(self.key), 12)}"


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
    read = [_parse_external(one) for one in external]
    flaws = [
        clip(f"chat record {n}: {flaw}") for n, flaw in enumerate(read, 1) if isinstance(flaw, str)
    ]
    more = len(flaws) - _NAMED
    named = [*flaws[:_NAMED], *([f"{more} more chat records are malformed"] if more > 0 else [])]
    return [one for one in read if isinstance(one, _ExternalRecord)], named


def _parse_external(one: object) -> _ExternalRecord | str:
    """A record, or a sentence that says why it is none."""
    if not isinstance(one, Mapping):
        return f"is no mapping but {type(one).__name__!r}"
    role, text = one.get("role"), _get_field(one, "content", "text")
    sender, processed = _get_field(one, "sender_id", "sender"), one.get("is_processed")
    seconds = parse_timestamp(_get_field(one, "timestamp", "time"))
    if role not in (*_SPOKEN, *_OTHERS):
        return f"role is {role!r}, which is none of {', '.join((*_SPOKEN, *_OTHERS))}"
    if not isinstance(text, str) or not text.strip():
        return f"content is {_describe_kind(text)} and no text"
    if not (sender is None or (isinstance(sender, str | int) and not isinstance(sender, bool))):
        return f"sender_id is {_describe_kind(sender)} and no name"
    if not isinstance(processed, bool):
        return f"is_processed is {processed!r} and neither true nor false"
    if seconds is None:
        return f"timestamp is {_get_field(one, 'timestamp', 'time')!r}, which is no time"
    name = "" if sender is None else str(sender)
    given = one.get("id")
    given_id = given if isinstance(given, str) else ""
    return _ExternalRecord(str(role), name, seconds, text, processed, given_id)


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


def _get_field(one: Mapping[object, object], *names: str) -> object:
    return next((one[name] for name in names if one.get(name) is not None), None)


def _describe_kind(value: object) -> str:
    return "empty" if isinstance(value, str) else f"{type(value).__name__!r}"
