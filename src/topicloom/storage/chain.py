"""The chain: JSON entries that each name the one before, like commits.

An entry's ref is a hash of its predecessor's ref and its own body, so a single ref (a *head*)
stands for everything up to it, and appending the same thing to the same head again gives the
same ref. On disk an entry is one JSON line that ends in a tail of fixed width:

    {"seq":1,"text":"Hello","prev":"0000000000000000","ref":"9f2c01d36a8be475"}

`prev` and `ref` can be cut off its end without parsing the body, and `grep`, `jq` and an
editor can read the rest.

What purging leaves of an entry is a *tombstone*. It keeps the ref and the prev, so that the chain
stays whole, and of the body only what the purge keeps. The mark in it is a hash of that rest: a
tombstone edited by hand is detected like any other entry.

    {"seq":1,"role":"user","purged":"1d0b7e3a90c2f468","prev":"0000000000000000","ref":"9f2c..."}
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from topicloom.errors import InputError, StorageError

NO_PREV = "0" * 16
"""Stands in a line's tail for "no entry before this one"."""
_TAIL_BYTES = len('"prev":"0123456789abcdef","ref":"0123456789abcdef"}\n')
_TAIL = re.compile(rb'[{,]"prev":"([0-9a-f]{16})","ref":"([0-9a-f]{16})"\}\n')
_UNIDENTIFYING = "time"
PURGED = "purged"
"""Marks a tombstone."""
_RESERVED = ("prev", "ref", PURGED)
_ENDS_MARKED = re.compile(rb'[{,]"purged":"[0-9a-f]{16}"\}\Z')
_COMPACT = (",", ":")
_MARK_BYTES = len(',"purged":"0123456789abcdef"}')


class RawEntry(NamedTuple):
    """One entry of a chain whose body is still text."""

    ref: str
    prev: str | None
    body: bytes
    """The body as compact JSON in UTF-8; empty where it was not read."""

    @property
    def key(self) -> str:
        return self.ref


def link(prev: str | None, body: Mapping[str, Any]) -> str:
    """The ref of a body appended after `prev`: 16 hex digits of SHA-256 over canonical JSON.

    The key `time` at the top of the body does not count: a step that is run again after a
    crash reads the clock again, and must still find the entry it has already written. What
    was written first, with its time, stays.

    Raises:
        InputError: The body cannot be JSON, or uses a reserved key.
    """
    counted = {key: value for key, value in body.items() if key != _UNIDENTIFYING}
    text = encode_json(
        [prev, counted], "an entry", ascii_only=True, sort_keys=True, separators=_COMPACT
    )
    return hashlib.sha256(text).hexdigest()[:16]


def draft(prev: str | None, body: Mapping[str, Any]) -> RawEntry:
    """A body ready to be stored after `prev`; raises as `dump_body` does."""
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
            raise InputError(
                "an entry may not have a key {key!r}: it belongs to the chain", key=key
            )
    return encode_json(body, "an entry", separators=_COMPACT)


def load_body(text: bytes) -> dict[str, Any]:
    """A body parsed; raises StorageError if the text is no JSON object."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StorageError("a stored entry is not JSON: {error}", error=error) from error
    if not isinstance(body, dict):
        raise StorageError("a stored entry is not a JSON object")
    return body


def join_line(raw: RawEntry) -> bytes:
    """The line of an entry whose body is text, newline included."""
    comma = b"" if raw.body == b"{}" else b","
    tail = f'"prev":"{raw.prev or NO_PREV}","ref":"{raw.ref}"}}\n'
    return raw.body[:-1] + comma + tail.encode("ascii")


def split_line(line: bytes) -> RawEntry | None:
    """An entry from its line, the body unparsed; None when the tail is not that of an entry."""
    line = _strip_return(line)
    tail = split_tail(line)
    if tail is None:
        return None
    ref, prev = tail
    return RawEntry(ref, prev, line[:-_TAIL_BYTES].removesuffix(b",") + b"}")


def split_tail(line: bytes) -> tuple[str, str | None] | None:
    """Ref and prev of a line, without looking at its body; None when they are not there."""
    line = _strip_return(line)
    match = _TAIL.fullmatch(line, max(0, len(line) - _TAIL_BYTES - 1))
    if match is None or not line.startswith(b"{"):
        return None
    prev, ref = match[1].decode("ascii"), match[2].decode("ascii")
    return ref, None if prev == NO_PREV else prev


def _strip_return(line: bytes) -> bytes:
    """The line as it was written, where a copy was given the line ends of Windows."""
    return line[:-2] + b"\n" if line.endswith(b"\r\n") else line


def tombstone(ref: str, prev: str | None, keep: Mapping[str, Any]) -> RawEntry:
    """The entry that takes the place of a purged one; raises as `dump_body` does."""
    comma = "," if keep else ""
    mark = f'{comma}"{PURGED}":"{link(ref, keep)}"}}'
    return RawEntry(ref, prev, dump_body(keep)[:-1] + mark.encode("ascii"))


def is_tombstone(raw: RawEntry) -> bool:
    return _ENDS_MARKED.search(raw.body, max(0, len(raw.body) - _MARK_BYTES)) is not None


def is_sealed(raw: RawEntry) -> bool:
    """True if an entry is encrypted; see `encrypted`."""
    return raw.body.startswith(b'{"sealed":"')


def load_intact(raw: RawEntry) -> dict[str, Any] | None:
    """The body of a stored entry, if that is what its ref says, or what purging left of it."""
    try:
        body = load_body(raw.body)
        if PURGED not in body:
            return body if link(raw.prev, body) == raw.ref else None
        left = {key: value for key, value in body.items() if key != PURGED}
        return body if link(raw.ref, left) == body[PURGED] else None
    except (StorageError, InputError):
        return None


def encode_json(data: Any, what: str, *, ascii_only: bool = False, **layout: Any) -> bytes:
    """Data as JSON in UTF-8; with escapes throughout where UTF-8 cannot hold a text in it.

    Raises:
        InputError: It cannot be JSON; the message calls it `what`.
    """
    try:
        text = json.dumps(data, ensure_ascii=ascii_only, allow_nan=False, **layout)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            "{what} has to be plain JSON data: {error}", what=what, error=error
        ) from error
    try:
        return text.encode()
    except UnicodeEncodeError:
        return encode_json(data, what, ascii_only=True, **layout)
