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
