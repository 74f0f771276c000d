"""Names of sessions: as people type them, and made from what a client or an export calls a chat."""

from __future__ import annotations

import hashlib
import re

from topicloom import InvalidNameError
from topicloom.hosting import cut

_TYPED = re.compile(r"\w[\w .-]{0,99}")
_PLAIN, _OTHERS = re.compile(r"\w[\w.-]{0,79}"), re.compile(r"[\W_]+")
_NOT_TYPED = re.compile(r"[^\w .-]+")
_LONGEST_TITLE = 80


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


def make_titled_name(title: str) -> str:
    """A name for a session after a title, such as `Tea in Kyoto`; "" if none can be made of it.

    Unlike with `make_session_name`, two titles may have one name.
    """
    plain = " ".join(_NOT_TYPED.sub(" ", title).split())
    name = re.sub(r"\.{2,}", ".", plain).lstrip(" .-")
    name = cut(name, _LONGEST_TITLE).rstrip(" .-")
    return name if _TYPED.fullmatch(name) else ""
