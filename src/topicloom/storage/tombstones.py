"""What purging leaves of an entry, and how that is told from damage.

A tombstone keeps the ref and the prev of its entry, so that the chain stays whole, and of the
body only what it was told to keep. The mark in it is a hash of that rest: a tombstone edited by
hand is found out like any other entry.

    {"seq":1,"role":"user","purged":"1d0b7e3a90c2f468","prev":"0000000000000000","ref":"9f2c..."}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from topicloom.errors import InputError, StorageError
from topicloom.storage.chain import PURGED, RawEntry, dump_body, link, load_body

_ENDS_MARKED = re.compile(rb'[{,]"purged":"[0-9a-f]{16}"\}\Z')
_MARK_BYTES = len(',"purged":"0123456789abcdef"}')


def tombstone(ref: str, prev: str | None, keep: Mapping[str, Any]) -> RawEntry:
    """The entry that takes the place of a purged one.

    Args:
        ref: Ref of the entry.
        prev: Ref of the entry before it.
        keep: What stays of its body, JSON-native.

    Raises:
        InputError: What stays cannot be JSON, or uses a reserved key.
    """
    comma = "," if keep else ""
    mark = f'{comma}"{PURGED}":"{link(ref, keep)}"}}'
    return RawEntry(ref, prev, dump_body(keep)[:-1] + mark.encode("ascii"))


def is_tombstone(raw: RawEntry) -> bool:
    """Whether an entry was purged."""
    return _ENDS_MARKED.search(raw.body, max(0, len(raw.body) - _MARK_BYTES)) is not None


def is_sound(raw: RawEntry) -> bool:
    """Whether a stored entry is what its ref says it is, or what purging left of that."""
    try:
        body = load_body(raw.body)
        mark = body.pop(PURGED, None)
        if mark is None:
            return link(raw.prev, body) == raw.ref
        return bool(mark == link(raw.ref, body))
    except (StorageError, InputError):
        return False


def merged(*parts: Iterable[RawEntry]) -> dict[str, RawEntry]:
    """Entries by ref, in order; of one that stands in several parts, the tombstone, else the first.

    What was purged on purpose does not come back with a copy that a crash left behind.
    """
    entries: dict[str, RawEntry] = {}
    for raw in (raw for part in parts for raw in part):
        if raw.ref not in entries or is_tombstone(raw):
            entries[raw.ref] = raw
    return entries
