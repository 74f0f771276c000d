"""Edits of the document as models write them."""

from __future__ import annotations

import json
from typing import Any

from topicloom.roles.markup import json_values

_OPERATIONS = frozenset({"SET", "INC", "PUSH", "REMOVE"})
_ALIASES = {"ADD": "PUSH", "APPEND": "PUSH", "DELETE": "REMOVE", "INCREMENT": "INC"}
_DEEPEST = 4
_WRAPPERS = ("edits", "operations", "ops")


def parse_edits(said: object, wrapped: int = 0) -> list[object]:
    """The edits of a tool's arguments or of an answer, read with good will; checked elsewhere.

    Takes `{"edits": [[...]]}`, a list of edits, one edit alone, edits as objects (`{"op": "SET",
    "path": ..., "value": ...}`), and JSON of any of these. Nothing of what cannot be read.

    Args:
        said: Anything.
        wrapped: How deep in other things it was found.
    """
    if wrapped > _DEEPEST:
        return []
    if isinstance(said, str):
        values = (value for value in json_values(said) if isinstance(value, dict | list))
        return next((edits for value in values if (edits := parse_edits(value, wrapped + 1))), [])
    if isinstance(said, dict):
        inner = next((said[name] for name in _WRAPPERS if name in said), None)
        if inner is not None:
            return parse_edits(inner, wrapped + 1)
        return [_edit(said)] if _is_one(said) else []
    if isinstance(said, list | tuple):
        return [_edit(said)] if _is_one(said) else [_edit(entry) for entry in said]
    return []


def _is_one(value: object) -> bool:
    """True if a value is one edit, and not a list of them."""
    if isinstance(value, dict):
        return bool({"op", "operation"} & value.keys())
    first = value[0] if isinstance(value, list | tuple) and value else None
    return isinstance(first, str) and _named(first) in _OPERATIONS


def _edit(value: Any) -> object:
    if isinstance(value, str):
        value = _loaded(value)
    if isinstance(value, dict) and _is_one(value):
        path = value.get("path", value.get("anchor", value.get("target")))
        rest = [value["value"]] if "value" in value else []
        value = [value.get("op", value.get("operation")), path, *rest]
    if isinstance(value, list | tuple) and value and isinstance(value[0], str):
        return [_named(value[0]), *value[1:]]
    return value


def _named(operation: str) -> str:
    upper = operation.strip().upper()
    return _ALIASES.get(upper, upper)


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
