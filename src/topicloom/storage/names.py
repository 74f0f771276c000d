"""Names from outside, made into names of files.

A thread id is whatever an application, a web request or a chat platform sends. None of it
becomes part of a path before it has been through here.
"""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote, unquote_to_bytes

from topicloom.errors import InvalidNameError

_LONGEST = 150
_PREFIX = 100
_OUTER_DOT = re.compile(r"^\.|\.$|(?<=\.)\.")
"""Dots at either end of a name, and those after another dot."""
_CUT_BYTE = re.compile(r"%.?$")
"""The rest of an escaped byte that was cut in the middle."""
_RESERVED = re.compile(
    r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)"
    r"|(?:checkpoints|store)\.sqlite(?:-wal|-shm|-journal)?$|lore-.*\.bin$"
)
"""Devices of Windows, and files that stand beside the folders of sessions."""
_TYPED = re.compile(r"\w[\w .-]{0,99}")
_PLAIN, _OTHERS = re.compile(r"\w[\w.-]{0,79}"), re.compile(r"[\W_]+")


def safe_name(name: str) -> str:
    """A file name for any text; no two texts share one.

    Everything but ASCII letters, digits, `_`, `-` and single inner dots is percent-encoded, so
    the result is never hidden, never `..` and never has a separator in it; `original_name`
    undoes it. So is the first letter of names that Windows or the folder of sessions has a use
    for, such as `con` and `store.sqlite`. Where that takes more than 150 bytes, the name becomes
    its first 100 bytes, `~` and a hash of it all, and cannot be undone.

    Raises:
        InvalidNameError: The name is empty.
    """
    if not name:
        raise InvalidNameError("a name may not be empty")
    raw = name.encode("utf-8", "surrogatepass")
    encoded = _OUTER_DOT.sub("%2E", quote(raw, safe="").replace("~", "%7E"))
    if _RESERVED.match(encoded):
        encoded = f"%{ord(encoded[0]):02X}{encoded[1:]}"
    if len(encoded) <= _LONGEST:
        return encoded
    return f"{_CUT_BYTE.sub('', encoded[:_PREFIX])}~{hashlib.sha256(raw).hexdigest()[:32]}"


def original_name(safe: str) -> str | None:
    """The text that `safe_name` made this of; None when it was too long to be kept whole."""
    if "~" in safe:
        return None
    return unquote_to_bytes(safe).decode("utf-8", "surrogatepass")


def check_session_name(name: str) -> str:
    """A session name as typed at a command line, returned as it is.

    Raises:
        InvalidNameError: It is not 1 to 100 letters, digits, `_`, `.`, `-` and spaces beginning
            with a letter, digit or `_`, or has `..` in it.
    """
    if not _TYPED.fullmatch(name) or ".." in name:
        raise InvalidNameError(
            "{name!r} cannot name a session: use 1 to 100 letters, digits, spaces, '_', '-' and"
            " '.', beginning with a letter, a digit or '_', and no '..'",
            name=name,
        )
    return name


def make_session_name(text: str) -> str:
    """A name for a session that can be typed at a command line; no two texts share one."""
    if _PLAIN.fullmatch(text) and ".." not in text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{_OTHERS.sub('-', f's-{text}')[:40].strip('-')}-{digest[:16]}"


_NOT_TYPED = re.compile(r"[^\w .-]+")
_LONGEST_TITLE = 80


def make_titled_name(title: str) -> str:
    """A name for a session after a title: `Tea in Kyoto`; "" if no letter of it may be in a name.

    Other than `make_session_name`, two titles may have one name.
    """
    plain = " ".join(_NOT_TYPED.sub(" ", title).split())
    name = re.sub(r"\.{2,}", ".", plain).lstrip(" .-")[:_LONGEST_TITLE].rstrip(" .-")
    return name if _TYPED.fullmatch(name) else ""
