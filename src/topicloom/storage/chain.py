"""The chain: JSON entries that each name the one before, like commits.

An entry's ref is a hash of its predecessor's ref and its own body, so a single ref (a *head*)
stands for everything up to it, and appending the same thing to the same head again gives the
same ref. On disk an entry is one JSON line that ends in a tail of fixed width:

    {"seq":1,"text":"Hello","prev":"0000000000000000","ref":"9f2c01d36a8be475"}

`prev` and `ref` can be cut off its end without parsing the body, and `grep`, `jq` and an
editor can read the rest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from topicloom.errors import InputError, StorageError

NO_PREV = "0" * 16
"""Stands in a line's tail for "no entry before this one"."""
_TAIL_BYTES = len('"prev":"0123456789abcdef","ref":"0123456789abcdef"}\n')
_TAIL = re.compile(rb'[{,]"prev":"([0-9a-f]{16})","ref":"([0-9a-f]{16})"\}\n')
_UNIDENTIFYING = "time"
PURGED = "purged"
"""Marks a body that was purged; see `tombstones`."""
_RESERVED = ("prev", "ref", PURGED)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a chain, parsed."""

    body: dict[str, Any]
    """What was appended, keys in their order."""
    prev: str | None
    """Ref of the entry before it; None for a first entry."""
    ref: str
    """Its own ref, 16 hex digits."""


class RawEntry(NamedTuple):
    """One entry of a chain whose body is still text."""

    ref: str
    prev: str | None
    body: bytes
    """The body as compact JSON in UTF-8."""


def link(prev: str | None, body: Mapping[str, Any]) -> str:
    """The ref of a body appended after `prev`.

    The key `time` at the top of the body does not count: a step that is run again after a
    crash reads the clock again, and must still find the entry it has already written. What
    was written first, with its time, stays.

    Args:
        prev: Ref of the entry before, or None.
        body: JSON-native data.

    Returns:
        The first 16 hex digits of SHA-256 over `[prev, body]` as canonical JSON.

    Raises:
        InputError: The body cannot be JSON, or uses a reserved key.
    """
    counted = {key: value for key, value in body.items() if key != _UNIDENTIFYING}
    text = _dumps([prev, counted], ascii_only=True, sort=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def draft(prev: str | None, body: Mapping[str, Any]) -> RawEntry:
    """A body ready to be stored after `prev`.

    Raises:
        InputError: The body cannot be JSON, or uses a reserved key.
    """
    return RawEntry(link(prev, body), prev, dump_body(body))


def dump_body(body: Mapping[str, Any]) -> bytes:
    """A body as compact JSON in UTF-8, keys in their own order.

    Text is written as it reads; a body with lone surrogates, which UTF-8 cannot hold, is
    written with escapes throughout. A high surrogate directly before a low one comes back as the
    one character the two stand for: JSON cannot tell these apart.

    Raises:
        InputError: The body cannot be JSON, or uses the key "prev", "ref" or "purged".
    """
    for key in _RESERVED:
        if key in body:
            raise InputError(f"an entry may not have a key {key!r}: it belongs to the chain")
    try:
        return _dumps(body, ascii_only=False).encode()
    except UnicodeEncodeError:
        return _dumps(body, ascii_only=True).encode("ascii")


def load_body(text: bytes) -> dict[str, Any]:
    """A body parsed; the caller owns the result.

    Raises:
        StorageError: The text is not a JSON object.
    """
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"a stored entry is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise StorageError("a stored entry is not a JSON object")
    return body


def encode_line(body: Mapping[str, Any], prev: str | None, ref: str) -> bytes:
    """The line of an entry, newline included.

    Raises:
        InputError: The body cannot be JSON, or uses the key "prev", "ref" or "purged".
    """
    return join_line(RawEntry(ref, prev, dump_body(body)))


def decode_line(line: bytes) -> Entry:
    """An entry from its line.

    Raises:
        StorageError: The line is not an entry.
    """
    raw = split_line(line)
    if raw is None:
        raise StorageError("a line is not an entry of a chain")
    return Entry(load_body(raw.body), raw.prev, raw.ref)


def join_line(raw: RawEntry) -> bytes:
    """The line of an entry whose body is text, newline included."""
    comma = b"" if raw.body == b"{}" else b","
    tail = f'"prev":"{raw.prev or NO_PREV}","ref":"{raw.ref}"}}\n'
    return raw.body[:-1] + comma + tail.encode("ascii")


def split_line(line: bytes) -> RawEntry | None:
    """An entry from its line, the body unparsed; None when the tail is not that of an entry."""
    tail = split_tail(line)
    if tail is None:
        return None
    ref, prev = tail
    return RawEntry(ref, prev, line[:-_TAIL_BYTES].removesuffix(b",") + b"}")


def split_tail(line: bytes) -> tuple[str, str | None] | None:
    """Ref and prev of a line, without looking at its body; None when they are not there."""
    match = _TAIL.fullmatch(line, max(0, len(line) - _TAIL_BYTES - 1))
    if match is None or not line.startswith(b"{"):
        return None
    prev, ref = match[1].decode("ascii"), match[2].decode("ascii")
    return ref, None if prev == NO_PREV else prev


def _dumps(data: Any, *, ascii_only: bool, sort: bool = False) -> str:
    try:
        return json.dumps(
            data,
            ensure_ascii=ascii_only,
            allow_nan=False,
            sort_keys=sort,
            separators=(",", ":"),
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"an entry has to be plain JSON data: {error}") from error
