"""What was really said, as a reflection reads it (spec 002, 5).

Native records come from the session's transcript, external ones from the application. The
transcript stores originals and nothing else: recall notes are in the ledger and prompts are
nowhere, so neither can be taken for something that was said.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, cast

from topicloom.reflection.due import ReflectionPolicy
from topicloom.state.rounds import blocks_of
from topicloom.state.stored_message import Record, seconds_of

_SPOKEN = ("user", "assistant")
_OTHERS = ("tool", "system")
_MILLISECONDS = 1e11
"""From here on a number is milliseconds: as seconds it would be the year 5138."""
_NAMED = 5
"""Malformed records that a report names."""


@dataclass(frozen=True, slots=True)
class ChatRecords:
    """What a reflection reads."""

    records: tuple[Record, ...]
    """User and assistant messages, oldest first; external ones are numbered from 1."""
    ids: Mapping[str, str]
    """The lasting id of each, by short id: itself for native records."""
    source: Literal["native", "external"]
    """Where they come from."""
    reports: tuple[str, ...] = ()
    """Why external records could not be used, a sentence for each that is malformed."""


@dataclass(frozen=True, slots=True)
class _Given:
    """An external record that is well formed."""

    role: str
    sender: str
    seconds: float
    text: str
    processed: bool
    id: str

    @property
    def key(self) -> tuple[str, str, float, str]:
        return self.role, self.sender, self.seconds, self.text


def native_records(
    records: Sequence[Record], now: float, policy: ReflectionPolicy
) -> tuple[list[Record], Record | None]:
    """The part of what is unread that the next reflection reads, in whole rounds.

    A newest round without a reply is left for the next time while it may still be answered.

    Args:
        records: Messages since the last reflection, in order.
        now: The time, in seconds since the epoch.
        policy: Says how many messages, and how long a reply may take.

    Returns:
        What was said by user and assistant, and the last message that this covers; None if
        nothing is to be read yet.
    """
    blocks = blocks_of(records)
    if blocks and _is_open(blocks[-1].records, now, policy):
        blocks.pop()
    taken: list[Record] = []
    for block in blocks:
        if taken and len(taken) + len(block.records) > policy.messages:
            break
        taken += block.records
    said = [r for r in taken if r.role in _SPOKEN and r.text.strip()]
    return said, taken[-1] if taken else None


def chat_records(external: object, native: Sequence[Record]) -> ChatRecords:
    """The external records if there are any and they are well formed, else the native ones.

    Of the external ones: those with `is_processed`, and the newest message of the user without;
    none twice by role, sender, time and content; in order of time.

    Args:
        external: A list of mappings with `role`, `content`, `timestamp` (ISO 8601, or seconds or
            milliseconds since the epoch), `is_processed`, and maybe `sender_id` and `id`;
            `sender`, `time` and `text` will do too. None for no external records.
        native: What the transcript holds since the last reflection.
    """
    own = ChatRecords(tuple(native), {r.id: r.id for r in native}, "native")
    if external is None:
        return own
    given, reports = _read(external)
    if reports:
        return ChatRecords(own.records, own.ids, "native", tuple(reports))
    chosen = _chosen(given)
    if not chosen:
        report = "chat_records hold nothing that was processed and no new message of the user"
        return ChatRecords(own.records, own.ids, "native", (report,))
    records = tuple(_record(seq, one) for seq, one in enumerate(chosen, 1))
    ids = {r.id: one.id for r, one in zip(records, chosen, strict=True)}
    return ChatRecords(records, ids, "external")


def _is_open(block: Sequence[Record], now: float, policy: ReflectionPolicy) -> bool:
    said_at = seconds_of(block[-1].time)
    waiting = said_at is not None and abs(now - said_at) < policy.idle_seconds
    return waiting and all(r.role == "user" for r in block)


def _chosen(given: Sequence[_Given]) -> list[_Given]:
    spoken = sorted((g for g in given if g.role in _SPOKEN), key=lambda g: g.seconds)
    fresh = [g for g in spoken if g.role == "user" and not g.processed][-1:]
    once = {g.key: g for g in (*fresh, *(g for g in spoken if g.processed))}
    return sorted(once.values(), key=lambda g: g.seconds)


def _read(external: object) -> tuple[list[_Given], list[str]]:
    """The records, and a report on each that is malformed."""
    if not isinstance(external, Sequence) or isinstance(external, str | bytes):
        return [], [f"chat_records are no list but {type(external).__name__!r}"]
    read = [_given(one) for one in external]
    flaws = [f"chat record {n}: {flaw}" for n, flaw in enumerate(read, 1) if isinstance(flaw, str)]
    more = len(flaws) - _NAMED
    named = [*flaws[:_NAMED], *([f"{more} more chat records are malformed"] if more > 0 else [])]
    return [one for one in read if isinstance(one, _Given)], named


def _given(one: object) -> _Given | str:
    """A record, or what is wrong with it."""
    if not isinstance(one, Mapping):
        return f"is no mapping but {type(one).__name__!r}"
    role, text = one.get("role"), _field(one, "content", "text")
    sender, processed = _field(one, "sender_id", "sender"), one.get("is_processed")
    seconds = epoch_of(_field(one, "timestamp", "time"))
    if role not in (*_SPOKEN, *_OTHERS):
        return f"role is {role!r}, which is none of {', '.join((*_SPOKEN, *_OTHERS))}"
    if not isinstance(text, str) or not text.strip():
        return f"content is {_kind(text)} and no text"
    if not (sender is None or (isinstance(sender, str | int) and not isinstance(sender, bool))):
        return f"sender_id is {_kind(sender)} and no name"
    if not isinstance(processed, bool):
        return f"is_processed is {processed!r} and neither true nor false"
    if seconds is None:
        return f"timestamp is {_field(one, 'timestamp', 'time')!r}, which is no time"
    name = "" if sender is None else str(sender)
    made = _Given(str(role), name, seconds, text, processed, "")
    own = one.get("id")
    lasting = own if isinstance(own, str) and own else _made_id(made)
    return _Given(made.role, name, seconds, text, processed, lasting)


def epoch_of(time: object) -> float | None:
    """Seconds since the epoch of a time as chat platforms write it; None if it is none.

    Args:
        time: ISO 8601 (UTC where it names no zone), or seconds or milliseconds since the epoch,
            as a number or as its digits.
    """
    if isinstance(time, str):
        digits = time.strip()
        if len(digits) < 9 or not digits.replace(".", "", 1).isdecimal():
            return seconds_of(digits)
        return epoch_of(float(digits))
    if isinstance(time, bool) or not isinstance(time, int | float):
        return None
    try:
        seconds = float(time)
        seconds = seconds / 1_000 if abs(seconds) >= _MILLISECONDS else seconds
        datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if math.isfinite(seconds) else None


def _record(seq: int, one: _Given) -> Record:
    time = datetime.fromtimestamp(one.seconds, UTC).isoformat()
    role = cast("Literal['user', 'assistant']", one.role)
    return Record(seq=seq, role=role, text=one.text, time=time, speaker=one.sender or None)


def _made_id(one: _Given) -> str:
    said = json.dumps(one.key, ensure_ascii=True).encode()
    return f"x{hashlib.sha256(said).hexdigest()[:12]}"


def _field(one: Mapping[object, object], *names: str) -> object:
    return next((one[name] for name in names if one.get(name) is not None), None)


def _kind(value: object) -> str:
    return "empty" if isinstance(value, str) else f"{type(value).__name__!r}"
