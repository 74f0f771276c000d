"""Edits of the document as models write them, and the texts that answer them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from topicloom.domain.edits import AppliedEdit
from topicloom.prompts.wording import Wording, get_wording
from topicloom.roles.markup import find_json_values
from topicloom.state.language import Language

_OPERATIONS = frozenset({"SET", "INC", "PUSH", "REMOVE"})
_ALIASES = {"ADD": "PUSH", "APPEND": "PUSH", "DELETE": "REMOVE", "INCREMENT": "INC"}
_DEEPEST = 4
_WRAPPERS = ("edits", "operations", "ops")


def parse_edits(said: object, wrapped: int = 0) -> list[object]:
    """The edits of a tool's arguments or of an answer, read leniently; checked elsewhere.

    Takes `{"edits": [[...]]}`, a list of edits, one edit alone, edits as objects (`{"op": "SET",
    "path": ..., "value": ...}`), and JSON of any of these, `wrapped` levels deep in other things.
    """
    if wrapped > _DEEPEST:
        return []
    if isinstance(said, str):
        values = (value for value in find_json_values(said) if isinstance(value, dict | list))
        return next((edits for value in values if (edits := parse_edits(value, wrapped + 1))), [])
    if isinstance(said, dict):
        inner = next((said[name] for name in _WRAPPERS if name in said), None)
        if inner is not None:
            return parse_edits(inner, wrapped + 1)
        return [_parse_edit(said)] if _is_edit(said) else []
    if isinstance(said, list | tuple):
        return [_parse_edit(said)] if _is_edit(said) else [_parse_edit(entry) for entry in said]
    return []


def _is_edit(value: object) -> bool:
    if isinstance(value, dict):
        return bool({"op", "operation"} & value.keys())
    first = value[0] if isinstance(value, list | tuple) and value else None
    return isinstance(first, str) and _named(first) in _OPERATIONS


def _parse_edit(value: Any) -> object:
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, dict) and _is_edit(value):
        path = value.get("path", value.get("anchor", value.get("target")))
        rest = [value["value"]] if "value" in value else []
        value = [value.get("op", value.get("operation")), path, *rest]
    if isinstance(value, list | tuple) and value and isinstance(value[0], str):
        return [_named(value[0]), *value[1:]]
    return value


def _named(operation: str) -> str:
    upper = operation.strip().upper()
    return _ALIASES.get(upper, upper)


def format_confirmation(changes: Sequence[AppliedEdit], language: Language) -> str:
    return get_wording(language).made.format(changes=_format_changes(changes, language))


def format_tool_result(
    changes: Sequence[AppliedEdit], errors: Sequence[str], language: Language
) -> str:
    """The result of `edit_state` for the model."""
    words = get_wording(language)
    if errors:
        return words.edits_refused.format(errors="\n".join(f"- {error}" for error in errors))
    return words.edits_made.format(changes=_format_changes(changes, language))


def _format_changes(changes: Sequence[AppliedEdit], language: Language) -> str:
    between = "；" if language == "zh" else "; "
    return between.join(_format_change(change, get_wording(language)) for change in changes)


def _format_change(change: AppliedEdit, words: Wording) -> str:
    form = words.set_field if change.label else words.set_own
    if change.operation == "PUSH":
        form = words.pushed
    elif change.operation == "REMOVE":
        form = words.removed_field if change.field else words.removed
    value = change.value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return form.format(label=change.label or words.document, field=change.field, value=text)
